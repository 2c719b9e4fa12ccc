//! The spans of one turn: every part of a dispatch has an id of its own, below the turn's.

use std::sync::Arc;

use turnwire_event::port::TurnInput;
use turnwire_event::{Mint, Trace};

/// Where the spans of a turn come from.
pub(crate) struct Spans {
    turn: Trace,
    mint: Arc<dyn Mint>,
}

impl Spans {
    /// Below the caller's trace, or in one of the turn's own.
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

/// 16 hex digits; never all zeros, which means none.
fn span_id(mint: &dyn Mint) -> String {
    // The lower half of an identifier is all chance; the upper half tells the time.
    format!("{:016x}", (mint.ulid().0 as u64).max(1))
}
