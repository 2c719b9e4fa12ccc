//! A data service behind a tool server: the request of the envelope contract is the input of its
//! tool `enrich`, the envelope its result (S2-044). What the envelope is worth is judged where
//! every envelope is.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::CallToolResult;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use turnwire_dial::{Answer, DialError};
use turnwire_event::port::BoxFuture;
use turnwire_pack::DataService;

use crate::connector::{BYTES_MAX, CALL_MAX, Transport};
use crate::mcp::answer::words;
use crate::mcp::call::{Deaf, Lapse, call};
use crate::mcp::server::Server;
use crate::secrets::Secrets;

/// What a server calls the tool that enriches.
pub(crate) const ENRICH: &str = "enrich";

/// The way to one service.
pub(crate) struct Enrich {
    server: Arc<Server>,
    /// What the server was given and is for nobody else.
    secrets: Arc<Secrets>,
    timeout: Duration,
    max_bytes: usize,
}

impl Enrich {
    pub(crate) fn new(
        (server, secrets): (&Arc<Server>, &Arc<Secrets>),
        service: &DataService,
    ) -> Self {
        Self {
            server: Arc::clone(server),
            secrets: Arc::clone(secrets),
            timeout: Duration::from_millis(service.timeout_ms).min(CALL_MAX),
            max_bytes: usize::try_from(service.max_bytes.min(BYTES_MAX)).unwrap_or(usize::MAX),
        }
    }
}

impl Transport for Enrich {
    fn send(&self, request: Bytes) -> BoxFuture<'static, Result<Answer, DialError>> {
        let (server, max_bytes) = (Arc::clone(&self.server), self.max_bytes);
        let (within, secrets) = (self.timeout, Arc::clone(&self.secrets));
        Box::pin(async move {
            let Ok(Value::Object(request)) = serde_json::from_slice(&request) else {
                return Err(DialError::Refused);
            };
            match call(&server, ENRICH, request, within, &mut Deaf).await {
                Ok(result) => {
                    let answer = answer(result, &secrets);
                    let fits = answer.body.len() <= max_bytes;
                    fits.then_some(answer)
                        .ok_or(DialError::TooLarge { max_bytes })
                }
                Err(Lapse::Timeout) => Err(DialError::Timeout),
                Err(_) => Err(DialError::Unreachable),
            }
        })
    }
}

/// The fields of an envelope as they came, one that stands there twice among them: that is for the
/// judge to refuse.
#[derive(PartialEq)]
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Fields;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(All)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// An envelope that came as text, without keys, however they are written in it. Where there is
/// none, it stays as it is.
fn hidden(text: String, secrets: &Secrets) -> String {
    let fields = serde_json::from_str::<Fields>(&text).ok();
    let without = fields.and_then(|fields| {
        let hide = |(name, value): &(String, Value)| {
            let (name, value) = (name.clone(), value.clone());
            (secrets.hide(name), secrets.hide_in(value))
        };
        let without = Fields(fields.0.iter().map(hide).collect());
        let changed = (without != fields).then_some(without)?;
        serde_json::to_string(&changed).ok()
    });
    without.unwrap_or_else(|| secrets.hide(text))
}

/// The envelope as it would come over HTTP, without `secrets`; an error of the tool under the status that the
/// contract has for its word (R-24).
fn answer(result: CallToolResult, secrets: &Secrets) -> Answer {
    let failed = result.is_error == Some(true);
    let body = match result.structured_content {
        Some(structure) if !structure.is_null() => secrets.hide_in(structure).to_string(),
        _ => hidden(words(&result.content), secrets),
    };
    let word = || {
        serde_json::from_str::<Value>(&body)
            .ok()?
            .get("error")?
            .as_str()
            .map(str::to_owned)
    };
    let status = match failed.then(word) {
        None => 200,
        Some(word) => match word.as_deref() {
            Some("missing_principal") => 400,
            Some("principal_mismatch") => 403,
            _ => 502,
        },
    };
    Answer {
        status,
        body: body.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: Value) -> (u16, String) {
        let key = ("API_KEY".to_owned(), "sk-of-a-server".to_owned());
        let number = ("PIN_TOKEN".to_owned(), "1234567890".to_owned());
        let secrets = Secrets::of_env(&[key, number]);
        let answer = answer(serde_json::from_value(value).expect("a result"), &secrets);
        let body = String::from_utf8(answer.body.to_vec()).expect("text");
        (answer.status, body)
    }

    #[test]
    fn s2_044_an_envelope_is_the_structure_or_the_words_of_a_result() {
        let structure =
            json!({"content": [{"type": "text", "text": "no"}], "structuredContent": {"a": 1}});
        assert_eq!(of(structure), (200, r#"{"a":1}"#.to_owned()));
        let words = json!({"content": [{"type": "text", "text": "{\"a\":1}"}]});
        assert_eq!(of(words), (200, r#"{"a":1}"#.to_owned()));
    }

    #[test]
    fn g6_an_envelope_that_repeats_a_key_is_without_it() {
        let structure = json!({"content": [], "structuredContent":
            {"payload": {"why": "no sk-of-a-server", "n": 1_234_567_890}}});
        let expected = r#"{"payload":{"why":"no ***","n":"***"}}"#;
        assert_eq!(of(structure), (200, expected.to_owned()));
        for (text, expected) in [
            (r#"{"a": "sk-of-a-server"}"#, r#"{"a":"***"}"#),
            (r#"{"a": "\u0073k-of-a-server"}"#, r#"{"a":"***"}"#),
            // What is wrong with it stays wrong.
            (
                r#"{"p": 1, "p": "sk-of-a-server", "n": 1234567890}"#,
                r#"{"p":1,"p":"***","n":"***"}"#,
            ),
            ("no sk-of-a-server", "no ***"),
            (r#"{ "a": 1, "a": 2.50 }"#, r#"{ "a": 1, "a": 2.50 }"#),
        ] {
            let words = json!({"content": [{"type": "text", "text": text}]});
            assert_eq!(of(words), (200, expected.to_owned()), "{text}");
        }
        let failed = json!({"content": [{"type": "text", "text": "sk-of-a-server"}],
            "isError": true});
        assert_eq!(of(failed), (502, "***".to_owned()));
    }

    #[test]
    fn r_24_an_error_has_the_status_of_its_word() {
        for (word, status) in [
            ("missing_principal", 400),
            ("principal_mismatch", 403),
            ("other", 502),
        ] {
            let text = json!({ "error": word }).to_string();
            let failed = json!({"content": [{"type": "text", "text": text}], "isError": true});
            assert_eq!(of(failed).0, status);
        }
        let failed = json!({"content": [{"type": "text", "text": "boom"}], "isError": true});
        assert_eq!(of(failed).0, 502);
    }
}
