//! WarningLog lines about a malformed stream: the model and the broken rule, and no content.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use turnwire_event::code::{LlmErrorClass, TurnStatus};
use turnwire_event::{StopReason, TokenUsage};
use turnwire_model::{Delta, ModelError};

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
    let log = WarningLog::default();
    // With one subscriber alone, what another test's thread meets first would be taken for
    // something that nobody wants.
    let _other = tracing::Dispatch::new(WarningLog::default());
    let guard = tracing::subscriber::set_default(log.clone());
    tracing::callsite::rebuild_interest_cache();
    let mut harness = TurnHarness::of(move |_| iter(said.clone()).boxed());
    harness.options.message_bytes_max = 20;
    assert_eq!(harness.run().await.status, TurnStatus::Failed);
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

#[tokio::test]
async fn reply_without_output_is_logged() {
    let warned = warned(vec![stop(StopReason::EndTurn)]).await;
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("without output"), "{warned:?}");
}
