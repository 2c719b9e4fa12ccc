//! A data service behind an MCP server: the request of the envelope contract is the input of the
//! server's tool `enrich`, the envelope is its result (S2-044). The connector checks the envelope
//! like any other.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_dial::{DialError, JsonResponse, ResponseLimits};
use turnwire_pack::DataService;

use crate::data_service::{ServiceRequest, ServiceTransport, response_limits};
use crate::mcp::call::{CallError, CallRequest, call};
use crate::mcp::deadline::Deadline;
use crate::mcp::json_text::compact_json;
use crate::mcp::output::{CallResult, StructuredContent};
use crate::mcp::server::ToolServer;
use crate::secrets::Secrets;

/// The name of the tool.
pub(crate) const ENRICH: &str = "enrich";

/// The transport to `service` behind `server`.
pub(crate) fn enrich_transport(
    server: &Arc<ToolServer>,
    service: &DataService,
) -> Arc<ServiceTransport> {
    let server = Arc::clone(server);
    let ResponseLimits { timeout, max_bytes } = response_limits(service);
    Arc::new(move |request: ServiceRequest| {
        let server = Arc::clone(&server);
        Box::pin(async move {
            let ServiceRequest { owner, body, trace } = request;
            let Ok(Value::Object(arguments)) = serde_json::from_slice(&body) else {
                return Err(DialError::Refused);
            };
            let request = CallRequest {
                tool: ENRICH,
                arguments,
                trace,
                owner: &owner,
                deadline: Deadline::after(timeout),
            };
            match call(&server, request, None).await {
                Ok(result) => {
                    let response = response(result, &server.secrets);
                    let small = response.filter(|response| response.body.len() <= max_bytes);
                    small.ok_or(DialError::TooLarge { max_bytes })
                }
                Err(CallError::Timeout) => Err(DialError::Timeout),
                Err(_) => Err(DialError::Unreachable),
            }
        })
    })
}

/// JSON or another text without keys, in whatever notation. A text without keys is not changed.
fn hide_in_text(text: String, secrets: &Secrets) -> String {
    let is_json = serde_json::from_str::<&RawValue>(&text).is_ok();
    let compact = |secrets: &Secrets| match is_json {
        true => compact_json(&text, usize::MAX, secrets),
        false => None,
    };
    match (compact(&Secrets::default()), compact(secrets)) {
        (Some(all), Some(hidden)) if all != hidden => hidden,
        (Some(_), Some(_)) => text,
        _ => secrets.hide(text),
    }
}

/// The envelope as an HTTP response without `secrets`; `None` if it is too large. An error of the
/// tool has the status that the contract gives to its code (R-24).
fn response(result: CallResult, secrets: &Secrets) -> Option<JsonResponse> {
    let is_error = result.is_error;
    let body = match result.structured {
        Some(StructuredContent::Json(json)) => hide_in_text(json, secrets),
        Some(StructuredContent::TooLarge) => return None,
        None => hide_in_text(result.text, secrets),
    };
    let error_code = || {
        let body = serde_json::from_str::<ErrorEnvelope<'_>>(&body).ok()?;
        serde_json::from_str::<String>(body.error.get()).ok()
    };
    let status = match is_error.then(error_code) {
        None => 200,
        Some(code) => match code.as_deref() {
            Some("missing_principal") => 400,
            Some("principal_mismatch") => 403,
            _ => 502,
        },
    };
    Some(JsonResponse {
        status,
        body: body.into(),
    })
}

#[derive(Deserialize)]
struct ErrorEnvelope<'a> {
    #[serde(borrow)]
    error: &'a RawValue,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn respond(value: Value) -> (u16, String) {
        let key = ("API_KEY".to_owned(), "sk-of-a-server".to_owned());
        let number = ("PIN_TOKEN".to_owned(), "1234567890".to_owned());
        let secrets = Secrets::of_env(&[key, number]);
        let result = CallResult::read(&value.to_string()).expect("a result");
        let response = response(result, &secrets).expect("a small one");
        let body = String::from_utf8(response.body.to_vec()).expect("text");
        (response.status, body)
    }

    // S2-044
    #[test]
    fn envelope_is_the_structured_content_or_the_text() {
        let structured =
            json!({"content": [{"type": "text", "text": "no"}], "structuredContent": {"a": 1}});
        assert_eq!(respond(structured), (200, r#"{"a":1}"#.to_owned()));
        let text = json!({"content": [{"type": "text", "text": "{\"a\":1}"}]});
        assert_eq!(respond(text), (200, r#"{"a":1}"#.to_owned()));
    }

    // G6
    #[test]
    fn keys_are_removed_from_an_envelope() {
        let structured = json!({"content": [], "structuredContent":
            {"payload": {"why": "no sk-of-a-server", "n": 1_234_567_890}}});
        let expected = r#"{"payload":{"why":"no ***","n":"***"}}"#;
        assert_eq!(respond(structured), (200, expected.to_owned()));
        for (text, expected) in [
            (r#"{"a": "sk-of-a-server"}"#, r#"{"a":"***"}"#),
            (r#"{"a": "\u0073k-of-a-server"}"#, r#"{"a":"***"}"#),
            // A duplicate field stays.
            (
                r#"{"p": 1, "p": "sk-of-a-server", "n": 1234567890}"#,
                r#"{"p":1,"p":"***","n":"***"}"#,
            ),
            ("no sk-of-a-server", "no ***"),
            (r#"{ "a": 1, "a": 2.50 }"#, r#"{ "a": 1, "a": 2.50 }"#),
        ] {
            let result = json!({"content": [{"type": "text", "text": text}]});
            assert_eq!(respond(result), (200, expected.to_owned()), "{text}");
        }
        let failed = json!({"content": [{"type": "text", "text": "sk-of-a-server"}],
            "isError": true});
        assert_eq!(respond(failed), (502, "***".to_owned()));
    }

    // R-24
    #[test]
    fn error_has_the_status_of_its_code() {
        for (code, status) in [
            ("missing_principal", 400),
            ("principal_mismatch", 403),
            ("other", 502),
        ] {
            let text = json!({ "error": code }).to_string();
            let failed = json!({"content": [{"type": "text", "text": text}], "isError": true});
            assert_eq!(respond(failed).0, status);
        }
        let failed = json!({"content": [{"type": "text", "text": "boom"}], "isError": true});
        assert_eq!(respond(failed).0, 502);
    }
}
