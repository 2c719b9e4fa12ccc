//! A data service behind a tool server: the request of the envelope contract is the input of its
//! tool `enrich`, the envelope its result (S2-044). What the envelope is worth is judged where
//! every envelope is.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::CallToolResult;
use serde_json::Value;
use turnwire_dial::{Answer, DialError};
use turnwire_event::port::BoxFuture;
use turnwire_pack::Service;

use crate::connector::{BYTES_MAX, CALL_MAX, Transport};
use crate::mcp::answer::words;
use crate::mcp::call::{Deaf, Lapse, call};
use crate::mcp::server::Server;

/// What a server calls the tool that enriches.
pub(crate) const ENRICH: &str = "enrich";

/// The way to one service.
pub(crate) struct Enrich {
    server: Arc<Server>,
    timeout: Duration,
    max_bytes: usize,
}

impl Enrich {
    pub(crate) fn new(server: &Arc<Server>, service: &Service) -> Self {
        Self {
            server: Arc::clone(server),
            timeout: Duration::from_millis(service.timeout_ms).min(CALL_MAX),
            max_bytes: usize::try_from(service.max_bytes.min(BYTES_MAX)).unwrap_or(usize::MAX),
        }
    }
}

impl Transport for Enrich {
    fn send(&self, request: Bytes) -> BoxFuture<'static, Result<Answer, DialError>> {
        let (server, max_bytes) = (Arc::clone(&self.server), self.max_bytes);
        let within = self.timeout;
        Box::pin(async move {
            let Ok(Value::Object(request)) = serde_json::from_slice(&request) else {
                return Err(DialError::Refused);
            };
            match call(&server, ENRICH, request, within, &mut Deaf).await {
                Ok(result) => {
                    let answer = answer(&result);
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

/// The envelope as it would come over HTTP; an error of the tool under the status that the
/// contract has for its word (R-24).
fn answer(result: &CallToolResult) -> Answer {
    let failed = result.is_error == Some(true);
    let body = match &result.structured_content {
        Some(structure) if !structure.is_null() => structure.to_string(),
        _ => words(&result.content),
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
        let answer = answer(&serde_json::from_value(value).expect("a result"));
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
