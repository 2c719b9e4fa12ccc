//! The span of a delivery: one client's stream of one turn, from its opening to its close.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::TurnId;
use turnwire_event::port::{MeasuredSpan, SpanValue};

use crate::tracer::{Tracer, TurnTarget, random_span};

/// How a turn is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryWire {
    /// A chat stream: server-sent events of one turn.
    Chat,
    /// A WebSocket that follows a session.
    Session,
}

impl DeliveryWire {
    const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Session => "session",
        }
    }
}

/// Measures a delivery. Recorded when it is dropped.
pub struct DeliverySpan {
    tracer: Arc<Tracer>,
    target: TurnTarget,
    wire: DeliveryWire,
    started: Instant,
    frames: u64,
    failure: Option<&'static str>,
}

impl DeliverySpan {
    /// Begins the span of a delivery of `turn`; `None` if the turn is not recorded.
    pub fn begin(tracer: &Arc<Tracer>, turn: TurnId, wire: DeliveryWire) -> Option<Self> {
        Some(Self {
            target: tracer.target(turn)?,
            tracer: Arc::clone(tracer),
            wire,
            started: Instant::now(),
            frames: 0,
            failure: None,
        })
    }

    /// Counts frames that were written to the socket.
    pub fn add_frames(&mut self, frames: u64) {
        self.frames += frames;
    }

    /// The stream ended before the turn was delivered, for this reason.
    pub fn fail(&mut self, reason: &'static str) {
        self.failure = Some(reason);
    }
}

impl Drop for DeliverySpan {
    fn drop(&mut self) {
        let frames = i64::try_from(self.frames).unwrap_or(i64::MAX);
        let measured = MeasuredSpan {
            name: format!("deliver {}", self.wire.name()),
            is_client: false,
            span: random_span(),
            parent: self.target.turn,
            started: self.started,
            ended: Instant::now(),
            failure: self.failure.map(str::to_owned),
            attributes: vec![
                ("turnwire.wire", self.wire.name().into()),
                ("turnwire.delivery.frames", SpanValue::Int(frames)),
            ],
        };
        self.tracer.write(&self.target, measured);
    }
}
