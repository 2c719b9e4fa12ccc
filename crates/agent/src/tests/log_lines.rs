//! Warnings in the server's log: the cause of a failure and the trace id, and no content.

use std::collections::BTreeSet;
use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use turnwire_event::code::{LlmErrorClass, TurnStatus};
use turnwire_event::{StopReason, TokenUsage, TraceContext};
use turnwire_model::{Delta, ModelError};
use turnwire_tool::ToolFailure;

use super::pack_harness::{PackHarness, pack, service};
use super::turn_harness::TurnHarness;

/// A subscriber that records the warnings of this crate.
#[derive(Clone, Default)]
struct WarningLog(Arc<Mutex<Vec<String>>>);

struct WarningLine(String);

impl Visit for WarningLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").expect("a string takes all");
    }
}

impl Subscriber for WarningLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("turnwire_agent")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = WarningLine(String::new());
        event.record(&mut line);
        if *event.metadata().level() == Level::WARN {
            self.0.lock().push(line.0);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The warnings of a turn whose model streams `said`.
async fn warned(said: Vec<Result<Delta, ModelError>>) -> Vec<String> {
    let mut harness = TurnHarness::of(move |_| iter(said.clone()).boxed());
    harness.options.message_bytes_max = 20;
    warned_by(async { assert_eq!(harness.run().await.status, TurnStatus::Failed) }).await
}

/// The warnings of `work`.
async fn warned_by(work: impl Future<Output = ()>) -> Vec<String> {
    let log = WarningLog::default();
    // With one subscriber alone, what another test's thread meets first would be taken for
    // something that nobody wants.
    let _other = tracing::Dispatch::new(WarningLog::default());
    let guard = tracing::subscriber::set_default(log.clone());
    tracing::callsite::rebuild_interest_cache();
    work.await;
    drop(guard);
    let lines = log.0.lock();
    lines.clone()
}

fn text(block: u32, text: &str) -> Result<Delta, ModelError> {
    let text = text.into();
    Ok(Delta::Text { block, text })
}

fn tool(block: u32, name: &str) -> Result<Delta, ModelError> {
    Ok(Delta::ToolStart {
        block,
        name: name.into(),
        provider_id: None,
    })
}

fn stop(reason: StopReason) -> Result<Delta, ModelError> {
    let usage = TokenUsage::default();
    Ok(Delta::Stop { reason, usage })
}

// G6
#[tokio::test]
async fn malformed_stream_is_logged_without_content() {
    let secret = || text(0, "SECRET");
    let cases = [
        (
            vec![secret(), text(0, "SECRET and more of it")],
            "message_too_large",
        ),
        (vec![secret(), tool(0, "SECRET")], "block_kind"),
        (vec![secret(), text(u32::MAX, "SECRET")], "too_many_blocks"),
        (vec![secret(), tool(1, "")], "tool_name"),
        (vec![secret(), stop(StopReason::Cancelled)], "stop_reason"),
        (
            vec![secret(), Err(LlmErrorClass::Cancelled.into())],
            "cancelled",
        ),
        (vec![secret()], "no_end"),
    ];
    for (said, place) in cases {
        let warned = warned(said).await;
        assert_eq!(warned.len(), 1, "{place}: {warned:?}");
        let line = &warned[0];
        for word in ["model=\"scripted:default\"", &format!("place=\"{place}\"")] {
            assert!(line.contains(word), "{word} in {line}");
        }
        assert!(!line.contains("SECRET"), "{line}");
    }
}

#[tokio::test]
async fn provider_failure_is_not_logged_twice() {
    let broken = Err(LlmErrorClass::Transport.into());
    assert_eq!(warned(vec![text(0, "a"), broken]).await, [""; 0]);
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn trace() -> Option<Arc<TraceContext>> {
    Some(Arc::new(TraceContext {
        trace_id: TRACE.into(),
        span_id: "b7ad6b7169203331".into(),
        parent_span_id: None,
    }))
}

/// The one warning of a turn with the trace [`TRACE`], whose ids it has.
async fn traced_line(mut harness: PackHarness) -> String {
    harness.input.trace = trace();
    let mut lines = warned_by(async { drop(harness.run().await) }).await;
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let line = lines.remove(0);
    let input = &harness.input;
    let ids = [input.session_id.to_string(), input.turn_id.to_string()];
    for id in ids.iter().map(String::as_str).chain([TRACE]) {
        assert!(line.contains(id), "{id} in {line}");
    }
    line
}

// D-83
#[tokio::test]
async fn reply_without_output_is_logged() {
    let silent = "- steps: [{text: ''}]";
    let line = traced_line(PackHarness::new(silent)).await;
    assert!(line.contains("without output"), "{line}");
}

// D-83, G7
#[tokio::test]
async fn limit_of_the_turn_is_logged() {
    const CIRCLES: &str = "- steps: [{tool: {name: llm_feedback, input: {}}}, {stop: tool_use, usage: {total_tokens: 40, cost_usd: 0.1}}]";
    for (limit, reason) in [
        ("calls_max: 3", "limit_calls"),
        ("turn_tokens_max: 100", "limit_tokens"),
        ("turn_cost_max_usd: 0.15", "limit_cost"),
    ] {
        let pack = pack(&format!("limits: {{{limit}}}\n"), "support");
        let line = traced_line(PackHarness::of(pack, CIRCLES)).await;
        assert!(line.contains("a turn reached a limit"), "{line}");
        assert!(line.contains(&format!("limit=\"{reason}\"")), "{line}");
    }
}

// D-83
#[tokio::test]
async fn turn_without_callers_trace_has_one_trace_id() {
    const ONE: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: a}}}]}
- {when: {agent: orchestrator}, steps: [{text: Sorry.}]}
- {when: {agent: shop}, steps: [{text: ''}]}
";
    let harness = PackHarness::new(ONE);
    let lines = warned_by(async { drop(harness.run().await) }).await;
    // That of the span which the session opens around the turn.
    let trace_id = harness.input.turn_id.trace_id();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(
        lines[0].contains(&format!("trace_id=\"{trace_id}\"")),
        "{lines:?}"
    );
    let emissions = harness.recorder.emissions();
    let traces = emissions
        .iter()
        .filter_map(|emission| emission.trace.as_ref());
    let ids: BTreeSet<&str> = traces.map(|trace| trace.trace_id.as_str()).collect();
    assert_eq!(ids, BTreeSet::from([&*trace_id]));
}

// D-83
#[tokio::test(start_paused = true)]
async fn failure_is_logged_with_its_cause_and_trace() {
    const SINGLE: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: SECRET}}}]}
- {when: {agent: orchestrator}, steps: [{text: Sorry.}]}
- {when: {agent: shop}, steps: [SHOP]}
";
    let no_answer = "a sub-agent gave no answer";
    let cases = [
        ("{tool: {name: search}}", "a tool failed", "tool=\"search\""),
        ("{tool: {name: search}}", no_answer, "cause=\"fatal_tool\""),
        ("{stall: true}", no_answer, "cause=\"timeout\""),
        ("{text: ''}", no_answer, "cause=\"empty_answer\""),
        ("{tool: {name: show}}", no_answer, "cause=\"limit_calls\""),
        ("{error: provider}", no_answer, "cause=\"provider\""),
    ];
    for (shop, message, field) in cases {
        let fatal = ToolFailure::internal("SECRET").fatal();
        let mut harness = PackHarness::new(&SINGLE.replace("SHOP", shop)).tool(service(
            "search",
            None,
            Err(fatal),
        ));
        harness.input.trace = trace();
        let lines = warned_by(async { drop(harness.run().await) }).await;
        let mut matching = lines.iter().filter(|line| line.contains(message));
        let line = matching.find(|line| line.contains(field));
        let line = line.unwrap_or_else(|| panic!("{shop}: {lines:#?}"));
        assert!(line.contains(&format!("trace_id=\"{TRACE}\"")), "{line}");
        assert!(line.contains(&harness.input.turn_id.to_string()), "{line}");
        assert!(line.contains("\"shop\""), "{line}");
        assert!(!lines.join("\n").contains("SECRET"), "{lines:#?}");
    }
}
