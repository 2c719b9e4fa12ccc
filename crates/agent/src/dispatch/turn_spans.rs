//! The trace spans of one turn: every part of a dispatch has a span of its own below the turn's.

use std::sync::Arc;

use turnwire_event::port::TurnInput;
use turnwire_event::{IdGenerator, InvocationId, SpanId, TraceContext};

/// Creates the [`TraceContext`]s of a turn.
pub(crate) struct TurnSpans {
    turn: TraceContext,
    id_generator: Arc<dyn IdGenerator>,
}

impl TurnSpans {
    /// Spans below the caller's trace, or in the turn's own trace if the caller sent none.
    pub(crate) fn new(input: &TurnInput, id_generator: Arc<dyn IdGenerator>) -> Self {
        let turn = match &input.trace {
            Some(trace) => TraceContext::clone(trace),
            None => TraceContext {
                trace_id: input.turn_id.trace_id(),
                span_id: SpanId::of_turn(input.turn_id).to_string(),
                parent_span_id: None,
            },
        };
        Self { turn, id_generator }
    }

    /// A new span below the turn's.
    pub(crate) fn child(&self) -> Arc<TraceContext> {
        self.below(SpanId::of_ulid(self.id_generator.ulid()))
    }

    /// The span of a run of a sub-agent, below the turn's.
    pub(crate) fn of_invocation(&self, invocation: InvocationId) -> Arc<TraceContext> {
        self.below(SpanId::of_invocation(invocation))
    }

    fn below(&self, span: SpanId) -> Arc<TraceContext> {
        Arc::new(TraceContext {
            trace_id: self.turn.trace_id.clone(),
            span_id: span.to_string(),
            parent_span_id: Some(self.turn.span_id.clone()),
        })
    }
}
