//! A provider that refuses a call: the log says what the provider said, the client gets a code and a
//! sentence.

use serde_json::json;
use turnwire_e2e::models::{KEY, ProviderFixture};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::provider::{Dialect, ProviderAnswer};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The lines of the log about failed calls, without colours.
fn failed_calls(log: &str) -> Vec<&str> {
    let lines = log.lines();
    lines
        .filter(|line| line.contains("a model call failed"))
        .collect()
}

// D-83, FR-8
#[tokio::test]
async fn refused_call_is_explained_in_the_log_and_named_on_the_wire() {
    let setup = ProviderFixture::new(Dialect::Chat).await;
    let body = json!({"error": {
        "message": format!("The model `gpt-9` does not exist. Key: {KEY}"),
        "type": "invalid_request_error",
        "code": "model_not_found",
    }});
    let mut texts = Vec::new();
    for locale in ["en", "de", "es"] {
        setup
            .fake
            .push(ProviderAnswer::page(400, &body.to_string()));
        let trace = format!("00-{TRACE_ID}-00f067aa0ba902b7-01");
        let question = ChatSubmit::new("any offers?")
            .header("traceparent", &trace)
            .field("locale", locale);
        let (reply, _) = setup.submit(question).await;
        let code = json!({"code": "MODEL_UNAVAILABLE"});
        assert_eq!(reply.errors(), [(code, json!(true))]);
        assert!(!reply.text().is_empty());
        assert!(!reply.text().contains("gpt-9"), "{}", reply.text());
        texts.push(reply.text());
        let log = setup.engine.server.stderr();
        let lines = failed_calls(&log);
        let line = lines.last().expect("a line about the call");
        let address = format!("http://{}/", setup.fake.addr());
        let turn = reply.turn.to_string();
        let session = setup.engine.session.to_string();
        for part in [
            "provider=vendor",
            "model=\"vendor:",
            address.as_str(),
            "status=400",
            "invalid_request_error",
            "model_not_found",
            "The model `gpt-9` does not exist. Key: ***",
            session.as_str(),
            turn.as_str(),
            TRACE_ID,
        ] {
            assert!(line.contains(part), "{part} is missing: {line}");
        }
        assert!(!log.contains(KEY) && !log.contains("any offers?"), "{log}");
    }
    texts.dedup();
    assert_eq!(texts.len(), 3, "one sentence a language: {texts:?}");
    setup.engine.check_history().await;
}

// D-83
#[tokio::test]
async fn turn_without_traceparent_has_its_id_as_trace_id() {
    let setup = ProviderFixture::new(Dialect::Anthropic).await;
    setup.fake.push(ProviderAnswer::page(403, "no"));
    let (reply, _) = setup.ask("any offers?").await;
    let log = setup.engine.server.stderr();
    let lines = failed_calls(&log);
    assert_eq!(lines.len(), 1, "{log}");
    let trace_id = format!("trace_id=\"{}\"", reply.turn.trace_id());
    assert!(lines[0].contains(&trace_id), "{trace_id}: {}", lines[0]);
    assert!(lines[0].contains("status=403"), "{}", lines[0]);
}
