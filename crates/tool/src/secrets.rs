//! The keys that a tool sends to a service or a program. They are removed from whatever comes back,
//! in every notation, so that they do not reach the model.

use serde_json::{Map, Value};
use turnwire_dial::Url;
use turnwire_pack::{HttpDef, McpTransport, TemplatePart, template_parts};

use crate::percent::encoded;

/// Shorter values are words, not keys.
const SECRET_CHARS_MIN: usize = 8;
/// The text in place of a key.
const HIDDEN: &str = "***";
/// Parts of the names of headers, parameters and variables that contain keys. The values of others,
/// such as a version or a date, may be a legitimate part of a response.
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

/// The keys in every notation, the longest first: removing a part of a key would leave the other
/// part.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// The keys of an HTTP tool.
    pub(crate) fn of_http(http: &HttpDef) -> Self {
        let mut secrets = Vec::new();
        add_pairs(&http.headers, &mut secrets);
        add_url(&http.url, &mut secrets);
        add_templates(http.query.iter().cloned(), &mut secrets);
        Self::sorted(secrets)
    }

    /// The keys of an MCP server.
    pub(crate) fn of_server(transport: &McpTransport) -> Self {
        let mut secrets = Vec::new();
        match transport {
            McpTransport::Stdio { env, .. } => add_pairs(env, &mut secrets),
            McpTransport::Http { url, headers } => {
                add_pairs(headers, &mut secrets);
                add_url(url, &mut secrets);
            }
        }
        Self::sorted(secrets)
    }

    /// The keys in the environment of a program.
    pub(crate) fn of_env(env: &[(String, String)]) -> Self {
        let mut secrets = Vec::new();
        add_pairs(env, &mut secrets);
        Self::sorted(secrets)
    }

    fn sorted(mut secrets: Vec<String>) -> Self {
        secrets.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self(secrets)
    }

    /// Removes keys from `text`.
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

    /// Removes keys from every string, number and name in `value`.
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

fn add_pairs(pairs: &[(String, String)], secrets: &mut Vec<String>) {
    for (name, value) in pairs {
        add(name, value, secrets);
    }
}

/// Adds the keys in the query of a URL, as written and decoded.
fn add_url(url: &str, secrets: &mut Vec<String>) {
    add_templates(raw_query(url).chain(decoded_query(url)), secrets);
}

/// Adds the keys in the fixed text of parameters with fields.
fn add_templates(pairs: impl Iterator<Item = (String, String)>, secrets: &mut Vec<String>) {
    for (name, value) in pairs {
        for piece in template_parts(&value) {
            if let TemplatePart::Text(text) = piece {
                add(&name, text, secrets);
            }
        }
    }
}

/// Adds a value and each of its words in every notation, if its name is that of a key.
fn add(name: &str, value: &str, secrets: &mut Vec<String>) {
    let name = name.to_ascii_lowercase();
    if !KEY_NAMES.iter().any(|part| name.contains(part)) {
        return;
    }
    let words = std::iter::once(value).chain(value.split_whitespace());
    for word in words.filter(|word| word.len() >= SECRET_CHARS_MIN) {
        secrets.extend(notations(word));
    }
}

/// A key as text, in a URL, in a form and in JSON.
fn notations(word: &str) -> Vec<String> {
    let percent = encoded(word);
    let form = percent.replace("%20", "+");
    let json = Value::from(word).to_string();
    let json = json.trim_matches('"').to_owned();
    vec![
        word.to_owned(),
        json.replace('/', "\\/"),
        json,
        lowercase_escapes(&percent),
        lowercase_escapes(&form),
        percent,
        form,
    ]
}

/// `%2F` becomes `%2f`; other characters are not changed.
fn lowercase_escapes(encoded: &str) -> String {
    let mut text = String::with_capacity(encoded.len());
    let mut tail = encoded;
    while let Some(at) = tail.find('%') {
        // Encoded text is ASCII, and two digits follow.
        let end = (at + 3).min(tail.len());
        text.push_str(&tail[..at]);
        text.push_str(&tail[at..end].to_ascii_lowercase());
        tail = &tail[end..];
    }
    text.push_str(tail);
    text
}

/// The query parameters of a URL, as written.
fn raw_query(url: &str) -> impl Iterator<Item = (String, String)> {
    let (_, query) = url.split_once('?').unwrap_or_default();
    let pairs = query.split('&').map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), value.to_owned())
    });
    pairs.collect::<Vec<_>>().into_iter()
}

/// The query parameters of a URL, decoded.
fn decoded_query(url: &str) -> impl Iterator<Item = (String, String)> {
    let url = Url::parse(url).ok();
    let pairs = url.iter().flat_map(|url| url.query_pairs());
    let pairs = pairs.map(|(name, value)| (name.into_owned(), value.into_owned()));
    pairs.collect::<Vec<_>>().into_iter()
}
