//! The trace spans of one turn: every part of a dispatch has a span of its own below the turn's.

use std::sync::Arc;

use turnwire_event::port::TurnInput;
use turnwire_event::{Mint, Trace};

/// Creates the spans of a turn.
pub(crate) struct TurnSpans {
    turn: Trace,
    mint: Arc<dyn Mint>,
}

impl TurnSpans {
    /// Spans below the caller's trace, or in a new trace if the caller sent none.
    pub(crate) fn new(input: &TurnInput, mint: Arc<dyn Mint>) -> Self {
        let turn = match &input.trace {
            Some(trace) => Trace::clone(trace),
            None => Trace {
                trace_id: format!("{:032x}", mint.ulid().0),
                span_id: span_id(&*mint),
                parent_span_id: None,
            },
        };
        Self { turn, mint }
    }

    /// A new span below the turn's.
    pub(crate) fn child(&self) -> Arc<Trace> {
        Arc::new(Trace {
            trace_id: self.turn.trace_id.clone(),
            span_id: span_id(&*self.mint),
            parent_span_id: Some(self.turn.span_id.clone()),
        })
    }
}

/// 16 hex digits, never all zero, which trace context reserves for "invalid".
fn span_id(mint: &dyn Mint) -> String {
    // The lower half of a ULID is random; the upper half holds the time.
    format!("{:016x}", (mint.ulid().0 as u64).max(1))
}
