//! Who saw whether a turn gave the person anything: the turn's writer, with one note of it.
//!
//! Words of the agent that speaks count, and so does what tools have shown, whoever used them.
//! Reasoning, statuses and errors are no answer, and words between agents go to nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use turnwire_event::port::{BoxFuture, Emission, EmitError, Emitter, MessageEnd, Refusal};
use turnwire_event::{Body, ContentBlock, Position};

/// The turn's writer, watched.
pub(crate) struct Witness {
    writer: Arc<dyn Emitter>,
    shown: AtomicBool,
}

impl Witness {
    pub(crate) fn new(writer: Arc<dyn Emitter>) -> Self {
        Self {
            writer,
            shown: AtomicBool::new(false),
        }
    }

    /// Whether the person has been given anything.
    pub(crate) fn has_shown(&self) -> bool {
        self.shown.load(Ordering::Relaxed)
    }
}

fn shows(body: &Body) -> bool {
    match body {
        Body::TextDelta(delta) => !delta.text.trim().is_empty(),
        Body::DataLoaded(_) | Body::ComponentRendered(_) => true,
        _ => false,
    }
}

impl Emitter for Witness {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        // Once is enough, so that a long answer is not looked at piece by piece.
        let shows = !self.has_shown() && shows(&emission.body);
        let at = self.writer.emit(emission)?;
        if shows {
            self.shown.store(true, Ordering::Relaxed);
        }
        Ok(at)
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, Refusal> {
        self.writer.complete(end)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.writer.ready()
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), Refusal>> {
        self.writer.committed(at)
    }
}
