//! The turn's emitter, with a record of whether the turn has given the user any output.
//!
//! Text of the orchestrator is output, and so is data or a component that any agent's tool has shown.
//! Reasoning, statuses, errors and messages between agents are no output.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use turnwire_event::port::{
    BoxFuture, Emission, EmitError, EmitRefusal, EventEmitter, MeasuredSpan, MessageEnd,
};
use turnwire_event::{Body, CallId, ContentBlock, Position, TokenUsage};

use super::open_placeholders::OpenPlaceholders;

/// An [`EventEmitter`] that passes everything on and notes the first output.
pub(crate) struct OutputRecorder {
    inner: Arc<dyn EventEmitter>,
    has_output: AtomicBool,
    has_text: AtomicBool,
    placeholders: Mutex<OpenPlaceholders>,
}

impl OutputRecorder {
    pub(crate) fn new(inner: Arc<dyn EventEmitter>) -> Self {
        Self {
            inner,
            has_output: AtomicBool::new(false),
            has_text: AtomicBool::new(false),
            placeholders: Mutex::default(),
        }
    }

    /// True once the turn has given the user any output.
    pub(crate) fn has_output(&self) -> bool {
        self.has_output.load(Ordering::Relaxed)
    }

    /// Takes the events that end the placeholders which the turn has left open.
    pub(crate) fn placeholder_endings(&self) -> Vec<Body> {
        self.placeholders.lock().take_endings()
    }

    /// True once the turn has streamed text to the user.
    pub(crate) fn has_text(&self) -> bool {
        self.has_text.load(Ordering::Relaxed)
    }
}

fn is_text(body: &Body) -> bool {
    matches!(body, Body::TextDelta(delta) if !delta.text.trim().is_empty())
}

fn is_output(body: &Body) -> bool {
    match body {
        // Without items the event only removes a placeholder.
        Body::DataLoaded(data) => !data.items.is_empty(),
        Body::ComponentRendered(_) => true,
        body => is_text(body),
    }
}

impl EventEmitter for OutputRecorder {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        // Only until the first, so that the deltas of a long answer are not inspected.
        let is_first_output = !self.has_output() && is_output(&emission.body);
        let is_first_text = !self.has_text() && is_text(&emission.body);
        let placeholder = OpenPlaceholders::concerns(&emission.body).then(|| emission.body.clone());
        let position = self.inner.emit(emission)?;
        if let Some(body) = placeholder {
            self.placeholders.lock().apply(&body);
        }
        if is_first_output {
            self.has_output.store(true, Ordering::Relaxed);
        }
        if is_first_text {
            self.has_text.store(true, Ordering::Relaxed);
        }
        Ok(position)
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, EmitRefusal> {
        self.inner.complete(end)
    }

    fn report_usage(&self, call_id: CallId, usage: TokenUsage) {
        self.inner.report_usage(call_id, usage);
    }

    fn record_span(&self, span: MeasuredSpan) {
        self.inner.record_span(span);
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.inner.ready()
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), EmitRefusal>> {
        self.inner.committed(at)
    }
}
