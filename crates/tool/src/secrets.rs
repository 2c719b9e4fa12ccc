//! The keys that a tool gives to a service or a program. One that repeats them, as they are or in
//! another form, does not get them to the model.

use serde_json::{Map, Value};
use turnwire_dial::Url;
use turnwire_pack::{HttpDef, McpTransport, TemplatePart, template_parts};

use crate::percent::encoded;

/// Shorter texts are words, not keys.
const SECRET_CHARS_MIN: usize = 8;
/// What stands for a key.
const HIDDEN: &str = "***";
/// Parts of the names of headers, parameters and variables that carry keys. The values of others
/// (a version, a date) may well be in an answer and mean something there.
const KEY_NAMES: [&str; 9] = [
    "auth",
    "key",
    "token",
    "secret",
    "pass",
    "cookie",
    "session",
    "pwd",
    "credential",
];

/// The keys in every form that is looked for, the longest first: a part that is taken out would
/// leave the rest of the whole.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// The keys of an HTTP tool.
    pub(crate) fn of_http(http: &HttpDef) -> Self {
        let mut all = Vec::new();
        take_all(&http.headers, &mut all);
        take_address(&http.url, &mut all);
        take_filled(http.query.iter().cloned(), &mut all);
        Self::sorted(all)
    }

    /// The keys of a tool server.
    pub(crate) fn of_server(transport: &McpTransport) -> Self {
        let mut all = Vec::new();
        match transport {
            McpTransport::Stdio { env, .. } => take_all(env, &mut all),
            McpTransport::Http { url, headers } => {
                take_all(headers, &mut all);
                take_address(url, &mut all);
            }
        }
        Self::sorted(all)
    }

    /// The keys in a program's environment.
    pub(crate) fn of_env(env: &[(String, String)]) -> Self {
        let mut all = Vec::new();
        take_all(env, &mut all);
        Self::sorted(all)
    }

    fn sorted(mut all: Vec<String>) -> Self {
        all.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        Self(all)
    }

    /// `text` without keys.
    pub(crate) fn hide(&self, text: String) -> String {
        let hide = |text: String, secret: &String| {
            if text.contains(secret.as_str()) {
                text.replace(secret.as_str(), HIDDEN)
            } else {
                text
            }
        };
        self.0.iter().fold(text, hide)
    }

    /// The same for every text in `value`, names too, however they were written.
    pub(crate) fn hide_in(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hide(text)),
            Value::Array(items) => items.into_iter().map(|item| self.hide_in(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.into_iter();
                let fields = fields.map(|(name, value)| (self.hide(name), self.hide_in(value)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            Value::Number(number) => {
                let text = number.to_string();
                let hidden = self.hide(text.clone());
                if hidden == text {
                    Value::Number(number)
                } else {
                    Value::String(hidden)
                }
            }
            other @ (Value::Null | Value::Bool(_)) => other,
        }
    }
}

fn take_all(pairs: &[(String, String)], all: &mut Vec<String>) {
    for (name, value) in pairs {
        take(name, value, all);
    }
}

/// What stands in the parameters of an address.
fn take_address(url: &str, all: &mut Vec<String>) {
    take_filled(written(url).chain(read(url)), all);
}

/// What stands beside the places for fields in some parameters.
fn take_filled(pairs: impl Iterator<Item = (String, String)>, all: &mut Vec<String>) {
    for (name, value) in pairs {
        for piece in template_parts(&value) {
            if let TemplatePart::Text(text) = piece {
                take(&name, text, all);
            }
        }
    }
}

/// Adds the forms of a value, whole and each word of it, if its name says that it carries a key.
fn take(name: &str, value: &str, all: &mut Vec<String>) {
    let name = name.to_ascii_lowercase();
    if !KEY_NAMES.iter().any(|part| name.contains(part)) {
        return;
    }
    let words = std::iter::once(value).chain(value.split_whitespace());
    for word in words.filter(|word| word.len() >= SECRET_CHARS_MIN) {
        all.extend(forms(word));
    }
}

/// A key as it is, as it stands in an address or a form, and as it stands in JSON.
fn forms(word: &str) -> Vec<String> {
    let percent = encoded(word);
    let form = percent.replace("%20", "+");
    let json = Value::from(word).to_string();
    let json = json.trim_matches('"').to_owned();
    vec![
        word.to_owned(),
        json.replace('/', "\\/"),
        json,
        lower(&percent),
        lower(&form),
        percent,
        form,
    ]
}

/// `%2F` as `%2f`, and all else as it is.
fn lower(encoded: &str) -> String {
    let mut text = String::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some(at) = rest.find('%') {
        // What is encoded here is all of ASCII, and two digits follow.
        let end = (at + 3).min(rest.len());
        text.push_str(&rest[..at]);
        text.push_str(&rest[at..end].to_ascii_lowercase());
        rest = &rest[end..];
    }
    text.push_str(rest);
    text
}

/// The parameters in an address, as they stand there.
fn written(url: &str) -> impl Iterator<Item = (String, String)> {
    let (_, query) = url.split_once('?').unwrap_or_default();
    let pairs = query.split('&').map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), value.to_owned())
    });
    pairs.collect::<Vec<_>>().into_iter()
}

/// The same as they are meant.
fn read(url: &str) -> impl Iterator<Item = (String, String)> {
    let url = Url::parse(url).ok();
    let pairs = url.iter().flat_map(|url| url.query_pairs());
    let pairs = pairs.map(|(name, value)| (name.into_owned(), value.into_owned()));
    pairs.collect::<Vec<_>>().into_iter()
}
