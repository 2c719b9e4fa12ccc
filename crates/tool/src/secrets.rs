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
        let mut secrets = Self::of_url(&http.url);
        secrets.add_pairs(&http.headers);
        for (name, value) in &http.query {
            secrets.add_template(name, value);
        }
        secrets.sorted()
    }

    /// The keys of an MCP server.
    pub(crate) fn of_server(transport: &McpTransport) -> Self {
        match transport {
            McpTransport::Stdio { env, .. } => Self::of_env(env),
            McpTransport::Http { url, headers } => {
                let mut secrets = Self::of_url(url);
                secrets.add_pairs(headers);
                secrets.sorted()
            }
        }
    }

    /// The keys in the environment of a program.
    pub(crate) fn of_env(env: &[(String, String)]) -> Self {
        let mut secrets = Self::default();
        secrets.add_pairs(env);
        secrets.sorted()
    }

    /// The keys in the query of a URL, as written and decoded.
    fn of_url(url: &str) -> Self {
        let mut secrets = Self::default();
        let (_, query) = url.split_once('?').unwrap_or_default();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            secrets.add_template(name, value);
        }
        let url = Url::parse(url).ok();
        for (name, value) in url.iter().flat_map(Url::query_pairs) {
            secrets.add_template(&name, &value);
        }
        secrets
    }

    fn add_pairs(&mut self, pairs: &[(String, String)]) {
        for (name, value) in pairs {
            self.add(name, value);
        }
    }

    /// Adds the keys in the fixed text of a parameter with fields.
    fn add_template(&mut self, name: &str, value: &str) {
        for part in template_parts(value) {
            if let TemplatePart::Text(text) = part {
                self.add(name, text);
            }
        }
    }

    /// Adds a value and each of its words in every notation, if its name is that of a key.
    fn add(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        if KEY_NAMES.iter().any(|part| name.contains(part)) {
            let words = std::iter::once(value).chain(value.split_whitespace());
            let keys = words.filter(|word| word.len() >= SECRET_CHARS_MIN);
            self.0.extend(keys.flat_map(notations));
        }
    }

    fn sorted(mut self) -> Self {
        self.0
            .sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.0.dedup();
        self
    }

    /// Removes keys from `text`.
    pub(crate) fn hide(&self, text: String) -> String {
        let hide = |text: String, secret: &String| match text.contains(secret) {
            true => text.replace(secret, HIDDEN),
            false => text,
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
                match hidden == text {
                    true => Value::Number(number),
                    false => Value::String(hidden),
                }
            }
            other @ (Value::Null | Value::Bool(_)) => other,
        }
    }
}

/// A key as text, in a URL, in a form and in JSON.
fn notations(word: &str) -> [String; 7] {
    let percent = encoded(word);
    let form = percent.replace("%20", "+");
    let json = Value::from(word).to_string();
    let json = json.trim_matches('"').to_owned();
    [
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
    let mut escaped = 0;
    let lowercase = |c: char| {
        // Two digits follow each percent sign.
        escaped = if c == '%' { 2 } else { escaped - 1 };
        if escaped >= 0 {
            c.to_ascii_lowercase()
        } else {
            c
        }
    };
    encoded.chars().map(lowercase).collect()
}
