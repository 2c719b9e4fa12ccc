//! The keys that the server and its tools have. They are removed from whatever a tool returns, as
//! plain text and as they are written in URLs, forms and JSON, so that they do not reach the model. A
//! key in another form, such as Base64 or reversed, is not recognized.

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use turnwire_dial::Url;
use turnwire_pack::{HttpDef, McpTransport, Pack, TemplatePart, ToolKind, template_parts};

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
/// Words in the names of environment variables that contain keys. Stricter than [`KEY_NAMES`]: the
/// environment also has names like `XDG_SESSION_TYPE` and `SSH_AUTH_SOCK`.
const KEY_VARIABLES: [&str; 11] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Keys to be removed from results, in the notations of text, URLs, forms and JSON. Clones share
/// them.
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<SecretMatcher>>);

/// Finds all keys in one pass.
struct SecretMatcher {
    /// The texts to remove, sorted and without duplicates.
    notations: Vec<String>,
    automaton: AhoCorasick,
}

/// Collects keys for [`Secrets`].
#[derive(Default)]
pub struct SecretCollector {
    notations: Vec<String>,
}

impl SecretCollector {
    /// Adds all keys that the tools, MCP servers, data services and model providers of `pack` are
    /// given in headers, parameters and variables.
    pub fn add_pack(&mut self, pack: &Pack) {
        for tool in &pack.tools {
            match &tool.kind {
                ToolKind::Http(http) => self.add_http(http),
                ToolKind::Process(process) => self.add_pairs(&process.env),
                ToolKind::Ccs { .. }
                | ToolKind::Render { .. }
                | ToolKind::Direct(_)
                | ToolKind::Mcp { .. }
                | ToolKind::Delegate { .. } => {}
            }
        }
        for server in pack.mcp_servers.values() {
            self.add_transport(&server.transport);
        }
        for service in pack.services.values() {
            self.add_url(&service.url);
            self.add_pairs(&service.headers);
        }
        for provider in pack.used_providers().into_values() {
            self.add_url(&provider.base_url);
            self.add_pairs(&provider.headers);
        }
    }

    /// Adds a variable of the server's environment if its name is that of a key, such as
    /// `GITHUB_TOKEN`, and the password and the keys in it if it is a URL, such as `DATABASE_URL`.
    pub fn add_variable(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_uppercase();
        let words: Vec<&str> = name.split('_').collect();
        // `PWD` alone is the working directory.
        let is_key = words.iter().any(|word| KEY_VARIABLES.contains(word)) && name != "PWD";
        if is_key {
            self.add_value(value);
        }
        if value.contains("://") {
            self.add_url(value);
        }
    }

    /// Adds a key and each of its words, if it is long enough to be one.
    pub fn add_value(&mut self, value: &str) {
        let words = std::iter::once(value).chain(value.split_whitespace());
        let keys = words.filter(|word| word.len() >= SECRET_CHARS_MIN);
        self.notations.extend(keys.flat_map(notations));
    }

    fn add_http(&mut self, http: &HttpDef) {
        self.add_url(&http.url);
        self.add_pairs(&http.headers);
        for (name, value) in &http.query {
            self.add_template(name, value);
        }
    }

    fn add_transport(&mut self, transport: &McpTransport) {
        match transport {
            McpTransport::Stdio { env, .. } => self.add_pairs(env),
            McpTransport::Http { url, headers } => {
                self.add_url(url);
                self.add_pairs(headers);
            }
        }
    }

    /// Adds the keys in the query of a URL and its password, as written and decoded.
    fn add_url(&mut self, url: &str) {
        let (_, query) = url.split_once('?').unwrap_or_default();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            self.add_template(name, value);
        }
        let url = Url::parse(url).ok();
        for (name, value) in url.iter().flat_map(Url::query_pairs) {
            self.add_template(&name, &value);
        }
        if let Some(password) = url.as_ref().and_then(Url::password) {
            self.add_value(password);
            self.add_value(&percent_decode_str(password).decode_utf8_lossy());
        }
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

    /// Adds a value if its name is that of a key.
    fn add(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        if KEY_NAMES.iter().any(|part| name.contains(part)) {
            self.add_value(value);
        }
    }

    /// Builds the matcher of the collected keys.
    pub fn build(mut self) -> Secrets {
        self.notations.sort_unstable();
        self.notations.dedup();
        if self.notations.is_empty() {
            return Secrets(None);
        }
        let automaton = AhoCorasick::new(&self.notations);
        Secrets(Some(Arc::new(SecretMatcher {
            automaton: automaton.expect("keys are far smaller than an automaton may be"),
            notations: self.notations,
        })))
    }
}

impl Secrets {
    /// The keys of an HTTP tool.
    pub(crate) fn of_http(http: &HttpDef) -> Self {
        let mut keys = SecretCollector::default();
        keys.add_http(http);
        keys.build()
    }

    /// The keys of an MCP server.
    pub(crate) fn of_server(transport: &McpTransport) -> Self {
        let mut keys = SecretCollector::default();
        keys.add_transport(transport);
        keys.build()
    }

    /// The keys in the environment of a program.
    pub(crate) fn of_env(env: &[(String, String)]) -> Self {
        let mut keys = SecretCollector::default();
        keys.add_pairs(env);
        keys.build()
    }

    /// These keys and `others`.
    pub(crate) fn and(&self, others: &Self) -> Self {
        match (&self.0, &others.0) {
            (None, _) => others.clone(),
            (_, None) => self.clone(),
            (Some(own), Some(other)) => {
                let has = |notation| other.notations.binary_search(notation).is_ok();
                if own.notations.iter().all(has) {
                    return others.clone();
                }
                let notations = own.notations.iter().chain(&other.notations);
                let notations = notations.cloned().collect();
                SecretCollector { notations }.build()
            }
        }
    }

    /// Removes keys from `text`, also where lines break within a key.
    pub(crate) fn hide(&self, text: String) -> String {
        let Some(matcher) = &self.0 else { return text };
        let spans = matcher.spans(&text);
        if spans.is_empty() {
            return text;
        }
        let mut hidden = String::with_capacity(text.len());
        let mut end = 0;
        for span in spans {
            hidden.push_str(&text[end..span.start]);
            hidden.push_str(HIDDEN);
            end = span.end;
        }
        hidden.push_str(&text[end..]);
        hidden
    }

    /// Removes keys from every string, number and name in `value`.
    pub(crate) fn hide_in(&self, value: Value) -> Value {
        if self.0.is_none() {
            return value;
        }
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

impl SecretMatcher {
    /// The parts of `text` that belong to a key, in order and without overlap. Overlapping keys are
    /// one part: removing one of them would leave the rest of the other.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let matches = self.automaton.find_overlapping_iter(text);
        let mut spans: Vec<Range<usize>> = matches.map(|found| found.range()).collect();
        if text.contains(['\n', '\r']) {
            spans.extend(self.spans_over_lines(text));
        }
        spans.sort_unstable_by_key(|span| (span.start, span.end));
        let mut merged: Vec<Range<usize>> = Vec::new();
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                _ => merged.push(span),
            }
        }
        merged
    }

    /// The keys with line breaks in them: those in the text without its line breaks.
    fn spans_over_lines(&self, text: &str) -> Vec<Range<usize>> {
        let mut joined = Vec::with_capacity(text.len());
        // For each line break its place in `joined`, in order.
        let mut breaks = Vec::new();
        for byte in text.bytes() {
            match byte {
                b'\n' | b'\r' => breaks.push(joined.len()),
                _ => joined.push(byte),
            }
        }
        let original = |at: usize| at + breaks.partition_point(|line_break| *line_break <= at);
        let matches = self.automaton.find_overlapping_iter(&joined);
        let spans = matches.map(|found| original(found.start())..original(found.end() - 1) + 1);
        spans.collect()
    }
}

/// A key as text, in a URL, in a form and in JSON.
fn notations(word: &str) -> [String; 7] {
    let percent = encoded(word);
    let form = percent.replace("%20", "+");
    let json = Value::from(word).to_string();
    // Without the quotes around it; the key may end with one.
    let json = json[1..json.len() - 1].to_owned();
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

#[cfg(test)]
mod tests;
