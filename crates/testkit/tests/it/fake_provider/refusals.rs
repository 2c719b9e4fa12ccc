//! What a real provider refuses, the fake refuses: an adapter's mistakes must not pass.

use serde_json::json;
use turnwire_testkit::provider::{Dialect, FakeProvider, ProviderAnswer};

use super::caller::{headers, path, post, request, send};

#[tokio::test]
async fn request_refused_by_provider_is_refused() {
    let provider = FakeProvider::start().await;
    provider.always("", ProviderAnswer::text(["never"]));
    provider.require_key("k");
    let mut number = 0;
    for dialect in Dialect::ALL {
        for dropped in headers(dialect).iter().skip(1) {
            let mut headers_left = headers(dialect);
            headers_left.retain(|header| header != dropped);
            let got = post(&provider, path(dialect), &headers_left, &request(dialect)).await;
            assert!(
                [400, 401].contains(&got.status),
                "{dropped:?}: {}",
                got.text()
            );
            assert!(provider.call(number).await.refused.is_some());
            number += 1;
        }
        for field in request(dialect).as_object().expect("an object").keys() {
            let mut body_left = request(dialect);
            body_left.as_object_mut().expect("an object").remove(field);
            assert_eq!(
                send(&provider, dialect, &body_left).await.status,
                400,
                "{dialect:?} {field}"
            );
            number += 1;
        }
    }
    let mut warm = request(Dialect::Anthropic);
    warm["temperature"] = json!(0.5);
    assert_eq!(send(&provider, Dialect::Anthropic, &warm).await.status, 400);
    let mut old = headers(Dialect::Anthropic);
    old[3].1 = "2023-06-01";
    assert_eq!(
        post(&provider, "/v1/messages", &old, &warm).await.status,
        200
    );
    let got = post(&provider, "/v2/messages", &old, &warm).await;
    assert_eq!(got.status, 404);
}

#[tokio::test]
async fn tool_calls_and_results_must_match() {
    let provider = FakeProvider::start().await;
    provider.always("", ProviderAnswer::text(["fine"]));
    let conversation = |dialect, call: bool, result: bool| {
        let mut body = request(dialect);
        let (field, asked, answered) = match dialect {
            Dialect::Anthropic => (
                "messages",
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "w", "input": {}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]}),
            ),
            Dialect::Chat => (
                "messages",
                json!({"role": "assistant", "tool_calls": [{"type": "function", "id": "a", "function": {"name": "w", "arguments": "{}"}}]}),
                json!({"role": "tool", "tool_call_id": "a", "content": "r"}),
            ),
            Dialect::Responses => (
                "input",
                json!({"type": "function_call", "call_id": "a", "name": "w", "arguments": "{}"}),
                json!({"type": "function_call_output", "call_id": "a", "output": "r"}),
            ),
            Dialect::Gemini => (
                "contents",
                json!({"role": "model", "parts": [{"functionCall": {"name": "w", "args": {}}}]}),
                json!({"role": "user", "parts": [{"functionResponse": {"name": "w", "response": {}}}]}),
            ),
        };
        if body[field].is_string() {
            body[field] = json!([{"role": "user", "content": "hello"}]);
        }
        let list = body[field].as_array_mut().expect("a list");
        list.extend(call.then_some(asked));
        list.extend(result.then_some(answered));
        body
    };
    for dialect in Dialect::ALL {
        for (call, result, status) in [(true, true, 200), (true, false, 400), (false, true, 400)] {
            let body = conversation(dialect, call, result);
            let got = send(&provider, dialect, &body).await;
            assert_eq!(got.status, status, "{dialect:?} {body} {}", got.text());
        }
    }
}
