//! The turn's emitter, with a record of whether the turn has given the user any output.
//!
//! Text of the orchestrator is output, and so is data or a component that any agent's tool has shown.
//! Reasoning, statuses, errors and messages between agents are no output.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use turnwire_event::port::{BoxFuture, Emission, EmitError, EmitRefusal, EventEmitter, MessageEnd};
use turnwire_event::{Body, ContentBlock, Position};

/// An [`EventEmitter`] that passes everything on and notes the first output.
pub(crate) struct OutputRecorder {
    inner: Arc<dyn EventEmitter>,
    has_output: AtomicBool,
}

impl OutputRecorder {
    pub(crate) fn new(inner: Arc<dyn EventEmitter>) -> Self {
        Self {
            inner,
            has_output: AtomicBool::new(false),
        }
    }

    /// True once the turn has given the user any output.
    pub(crate) fn has_output(&self) -> bool {
        self.has_output.load(Ordering::Relaxed)
    }
}

fn is_output(body: &Body) -> bool {
    match body {
        Body::TextDelta(delta) => !delta.text.trim().is_empty(),
        Body::DataLoaded(_) | Body::ComponentRendered(_) => true,
        _ => false,
    }
}

impl EventEmitter for OutputRecorder {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        // Only until the first output, so that the deltas of a long answer are not inspected.
        let is_first_output = !self.has_output() && is_output(&emission.body);
        let position = self.inner.emit(emission)?;
        if is_first_output {
            self.has_output.store(true, Ordering::Relaxed);
        }
        Ok(position)
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, EmitRefusal> {
        self.inner.complete(end)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.inner.ready()
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), EmitRefusal>> {
        self.inner.committed(at)
    }
}
