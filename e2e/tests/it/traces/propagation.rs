//! `traceparent` and `tracestate` of outgoing calls, with and without an exporter.

use serde_json::json;
use turnwire_e2e::engine::{EngineFixture, asks, working};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::collector::Collector;

use super::spans::{CALLER, TRACE_ID, engine, has};

/// The value of a header in the head of a request.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

// S4-014
#[tokio::test]
async fn data_service_gets_the_trace_and_the_flag_of_the_caller() {
    let engine = EngineFixture::new(working(asks(&["shop"], "Done."))).await;
    for flag in ["01", "00"] {
        let parent = format!("00-{TRACE_ID}-{CALLER}-{flag}");
        let question = ChatSubmit::new("offers")
            .header("traceparent", &parent)
            .header("tracestate", "a=1,b=2")
            .header("authorization", "Bearer token-of-the-client");
        engine.submit(question).await;
        let calls = engine.ccs.take();
        assert_eq!(calls.len(), 1);
        let head = &calls[0].head;
        let sent = header(head, "traceparent").expect("a trace");
        let parts: Vec<&str> = sent.split('-').collect();
        assert_eq!((parts[0], parts[1], parts[3]), ("00", TRACE_ID, flag));
        // The span of the sub-agent, as in its events and in the body.
        assert_eq!(
            calls[0].request["trace"],
            json!({"trace_id": TRACE_ID, "span_id": parts[2]})
        );
        assert_eq!(header(head, "tracestate"), Some("a=1,b=2"));
        assert!(!head.contains("token-of-the-client"), "{head}");
    }
    // Without a caller's trace: the turn's own, which nobody records.
    let reply = engine.submit(ChatSubmit::new("offers")).await;
    let calls = engine.ccs.take();
    let sent = header(&calls[0].head, "traceparent").expect("a trace");
    assert!(
        sent.starts_with(&format!("00-{}-", reply.turn.trace_id())),
        "{sent}"
    );
    assert!(sent.ends_with("-00"), "{sent}");
    assert_eq!(header(&calls[0].head, "tracestate"), None);
}

#[tokio::test]
async fn invalid_trace_of_a_caller_is_replaced() {
    let collector = Collector::start().await;
    let engine = engine(working(asks(&["shop"], "Done.")), &collector, &[]).await;
    let long = "a".repeat(600);
    for (parent, state) in [
        ("00-zz-00f067aa0ba902b7-01".to_owned(), "a=1"),
        (format!("00-{TRACE_ID}-{CALLER}-01"), long.as_str()),
    ] {
        let before = collector.spans().len();
        let question = ChatSubmit::new("offers")
            .header("traceparent", &parent)
            .header("tracestate", state);
        engine.submit(question).await;
        let spans = collector
            .spans_until("the turn", |spans| {
                has(&spans[before..], "invoke_agent orchestrator")
                    && has(&spans[before..], "deliver chat")
            })
            .await;
        let is_valid = parent.contains(TRACE_ID);
        for span in &spans[before..] {
            assert_eq!(span.state, "", "{span:?}");
            assert_eq!(span.trace_id == TRACE_ID, is_valid, "{span:?}");
        }
    }
}
