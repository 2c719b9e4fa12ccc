//! What a provider said when a call failed, for people who run the server: where the call went, the
//! status, and the provider's own type, code and message of the error.
//!
//! The message is text of another party. It is bounded, and keys and the user's own words are
//! removed. None of it reaches a client.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

/// Most characters of a provider's message: its first sentences say what is wrong.
const MESSAGE_CHARS_MAX: usize = 300;
/// Most characters of a type or a code: vendors' have up to forty.
const CODE_CHARS_MAX: usize = 80;
/// Characters of a message that are looked at.
const READ_CHARS_MAX: usize = 4_000;
/// Shorter texts are words that occur anywhere, not a quotation of the user.
const QUOTED_CHARS_MIN: usize = 8;
/// The shortest run of bytes of a request that is hidden: a clause, longer than the names of models.
const SHARED_BYTES_MIN: usize = 32;
/// The longest text in double quotes that is kept: the name of a model or a field is shorter.
const QUOTED_CHARS_MAX: usize = 80;
/// A run of letters and digits of this length is a key or a token, not a word.
const TOKEN_CHARS_MIN: usize = 32;
/// What keys begin with.
const KEY_PREFIXES: [&str; 8] = ["sk-", "sk_", "pk-", "pk_", "key-", "AIza", "ghp_", "xai-"];
/// The text in place of a key or of the user's words.
const HIDDEN: &str = "***";

/// A failed call of a provider, as its log line and `turnwire check --online` show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderFault {
    /// The operator's name of the provider.
    pub provider: String,
    /// The model, written `provider:model`.
    pub model: String,
    /// The address without query, user and password; empty if the call has no address.
    pub url: String,
    /// The HTTP status; `None` if there was no response.
    pub status: Option<u16>,
    /// What the provider said, if it said anything.
    pub said: ProviderMessage,
}

/// The error object of a provider. Fields that it lacks are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderMessage {
    /// The type, such as `invalid_request_error`.
    pub kind: String,
    /// The code, such as `model_not_found`.
    pub code: String,
    /// The message for people.
    pub message: String,
}

impl ProviderMessage {
    /// Reads the body of an error response: the error object is in its field `error`, or the whole
    /// body; a list counts by its first item. A body that is not JSON has none: it is mostly a page
    /// of a proxy.
    pub(crate) fn read_response(body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let body = body.get(0).unwrap_or(&body);
        Self::of_error(body.get("error").unwrap_or(body))
    }

    /// Reads the data of an event that failed a stream. Only an error object counts: other data is a
    /// part of the answer.
    pub(crate) fn read_event(data: &str) -> Self {
        let data: Value = serde_json::from_str(data).unwrap_or_default();
        let nested = data.get("response").and_then(|inner| inner.get("error"));
        let error = nested.or_else(|| data.get("error"));
        let error = error.or_else(|| Some(&data).filter(|data| data["type"] == "error"));
        error.map(Self::of_error).unwrap_or_default()
    }

    fn of_error(error: &Value) -> Self {
        let field = |name: &str| match error.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        // Google has the type in `status` and the HTTP status in `code`.
        let mut kinds = [field("type"), field("status")].into_iter();
        Self {
            kind: kinds.find(|kind| !kind.is_empty()).unwrap_or_default(),
            code: field("code"),
            message: error
                .as_str()
                .map_or_else(|| field("message"), str::to_owned),
        }
    }

    /// The same without keys, without `quoted`, the texts of the request, and bounded in length.
    /// `hide_keys` removes the keys of the provider.
    #[must_use]
    pub(crate) fn redacted(
        self,
        hide_keys: impl Fn(&str) -> String,
        quoted: &[Cow<'_, str>],
    ) -> Self {
        let hide = |text: &str| redact(&hide_keys(bounded_chars(text, READ_CHARS_MAX)));
        let is_quotation = |text: &&Cow<'_, str>| text.chars().count() >= QUOTED_CHARS_MIN;
        let message = bounded_chars(&self.message, READ_CHARS_MAX).to_owned();
        let message = quoted
            .iter()
            .filter(is_quotation)
            .fold(message, |message, text| message.replace(&**text, HIDDEN));
        let message = hide(&without_shared(&message, quoted));
        Self {
            kind: one_line(&hide(&self.kind), CODE_CHARS_MAX),
            code: one_line(&hide(&self.code), CODE_CHARS_MAX),
            message: one_line(&without_quotations(&message), MESSAGE_CHARS_MAX),
        }
    }
}

impl fmt::Display for ProviderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.model)?;
        if !self.url.is_empty() {
            write!(f, " at {}", self.url)?;
        }
        match self.status {
            Some(status) => write!(f, ": HTTP {status}")?,
            None => f.write_str(": no response")?,
        }
        let ProviderMessage {
            kind,
            code,
            message,
        } = &self.said;
        for word in [kind, code].into_iter().filter(|word| !word.is_empty()) {
            write!(f, ", {word}")?;
        }
        match message.is_empty() {
            true => Ok(()),
            false => write!(f, ": {message}"),
        }
    }
}

/// Replaces whatever looks like a key.
fn redact(text: &str) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        clean.push_str(if is_key(word) { HIDDEN } else { word });
        let mut letters = after.chars();
        clean.extend(letters.next());
        rest = letters.as_str();
    }
    clean
}

/// The text without the runs of bytes that it shares with one of `quoted`: a provider may quote a part
/// of a request.
fn without_shared(text: &str, quoted: &[Cow<'_, str>]) -> String {
    let windows = text.as_bytes().windows(SHARED_BYTES_MIN);
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (at, window) in windows.enumerate() {
        places.entry(window).or_default().push(at);
    }
    let mut shared = vec![false; text.len()];
    for window in quoted
        .iter()
        .flat_map(|text| text.as_bytes().windows(SHARED_BYTES_MIN))
    {
        for at in places.remove(window).into_iter().flatten() {
            shared[at..at + SHARED_BYTES_MIN].fill(true);
        }
    }
    let mut clean = String::new();
    let mut was_shared = false;
    for (at, letter) in text.char_indices() {
        let is_shared = shared[at..at + letter.len_utf8()].contains(&true);
        match is_shared {
            true if !was_shared => clean.push_str(HIDDEN),
            true => {}
            false => clean.push(letter),
        }
        was_shared = is_shared;
    }
    clean
}

/// Replaces long texts in double quotes: names are short, quotations of a prompt are not.
fn without_quotations(text: &str) -> String {
    let parts = text.split('"').enumerate();
    let hidden = parts.map(|(index, part)| match index % 2 {
        1 if part.chars().count() > QUOTED_CHARS_MAX => HIDDEN,
        _ => part,
    });
    hidden.collect::<Vec<_>>().join("\"")
}

/// True for a word that begins like a key, or has a long run of mixed letters and digits.
fn is_key(word: &str) -> bool {
    let is_prefixed = |prefix: &&str| word.len() > prefix.len() + 2 && word.starts_with(*prefix);
    let is_token = |run: &str| {
        run.len() >= TOKEN_CHARS_MIN
            && run.contains(|letter: char| letter.is_ascii_digit())
            && run.contains(|letter: char| letter.is_ascii_alphabetic())
    };
    KEY_PREFIXES.iter().any(is_prefixed) || word.split(['-', '_']).any(is_token)
}

/// One line of at most `chars_max` characters, without control characters.
fn one_line(text: &str, chars_max: usize) -> String {
    let words = text.split(|letter: char| letter.is_control() || letter.is_whitespace());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match bounded_chars(&line, chars_max) {
        start if start.len() < line.len() => format!("{start}…"),
        _ => line,
    }
}

fn bounded_chars(text: &str, chars_max: usize) -> &str {
    let end = text.char_indices().nth(chars_max);
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(said: ProviderMessage) -> (String, String, String) {
        (said.kind, said.code, said.message)
    }

    fn read(text: &str) -> (String, String, String) {
        parts(ProviderMessage::read_response(text.as_bytes()))
    }

    fn said(kind: &str, code: &str, message: &str) -> (String, String, String) {
        (kind.into(), code.into(), message.into())
    }

    #[test]
    fn error_object_of_each_vendor_is_read() {
        let openai = r#"{"error":{"message":"The model `gpt-9` does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#;
        let expected = said(
            "invalid_request_error",
            "model_not_found",
            "The model `gpt-9` does not exist",
        );
        assert_eq!(read(openai), expected);
        let anthropic =
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: x"}}"#;
        assert_eq!(read(anthropic), said("not_found_error", "", "model: x"));
        let gemini = r#"[{"error":{"code":404,"message":"no","status":"NOT_FOUND"}}]"#;
        assert_eq!(read(gemini), said("NOT_FOUND", "404", "no"));
        let event = |data: &str| parts(ProviderMessage::read_event(data));
        let responses = r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}}"#;
        assert_eq!(event(responses), said("", "server_error", "m"));
        assert_eq!(event(anthropic), said("not_found_error", "", "model: x"));
        let flat = r#"{"type":"error","code":"rate_limit_exceeded","message":"slow"}"#;
        assert_eq!(event(flat), said("error", "rate_limit_exceeded", "slow"));
        let answer = r#"{"type":"chunk","message":"a part of the answer"}"#;
        assert_eq!(event(answer), said("", "", ""));
        assert_eq!(
            read(r#"{"error":"model is loading"}"#).2,
            "model is loading"
        );
        for other in ["", "<html>no</html>", "7", "[]", "null"] {
            assert_eq!(read(other), said("", "", ""), "{other}");
        }
    }

    #[test]
    fn keys_and_words_of_the_user_are_removed() {
        const LETTER: &str = "Dear Anna, the tests came back and they are not what we hoped for.";
        let message = |text: &str| {
            let said = ProviderMessage {
                message: text.into(),
                ..ProviderMessage::default()
            };
            let hide_keys = |text: &str| text.replace("a-secret", "***");
            let quoted = ["my old bank account", "hi", LETTER].map(Cow::from);
            said.redacted(hide_keys, &quoted).message
        };
        for (text, expected) in [
            (
                "Incorrect API key provided: sk-abcd********wxyz. hi",
                "Incorrect API key provided: ***********wxyz. hi",
            ),
            ("key a-secret is wrong", "key *** is wrong"),
            ("bad value: \"my old bank account\"", "bad value: \"***\""),
            (
                "too long: Anna, the tests came back and they are not… (cut)",
                "too long:***… (cut)",
            ),
            (
                "\"a text of the prompt that is much longer than any name of a model or of a field is\" is bad",
                "\"***\" is bad",
            ),
            (
                "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9x.y",
                "Bearer ***.y",
            ),
            (
                "claude-sonnet-4-5-20250929 and\n\tthe rest\u{1b}[31m",
                "claude-sonnet-4-5-20250929 and the rest [31m",
            ),
        ] {
            assert_eq!(message(text), expected);
        }
        let long = message(&"word ".repeat(1_000));
        assert_eq!(long.chars().count(), MESSAGE_CHARS_MAX + 1);
    }

    #[test]
    fn fault_is_one_line() {
        let mut fault = ProviderFault {
            provider: "openai".into(),
            model: "openai:gpt-9".into(),
            url: "https://api.example/v1/chat/completions".into(),
            status: Some(404),
            said: ProviderMessage {
                kind: "invalid_request_error".into(),
                code: "model_not_found".into(),
                message: "no such model".into(),
            },
        };
        assert_eq!(
            fault.to_string(),
            "openai:gpt-9 at https://api.example/v1/chat/completions: HTTP 404, \
             invalid_request_error, model_not_found: no such model"
        );
        fault.status = None;
        fault.said = ProviderMessage::default();
        assert_eq!(
            fault.to_string(),
            "openai:gpt-9 at https://api.example/v1/chat/completions: no response"
        );
    }
}
