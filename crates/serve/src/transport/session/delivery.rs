//! The spans of the turns that a connection delivers: from the first frame that it writes while a turn
//! runs to the write of the turn's last one.

use std::sync::Arc;

use turnwire_event::TurnId;
use turnwire_otlp::{DeliverySpan, DeliveryWire, Tracer};
use turnwire_session::LiveSession;

/// The delivery that a connection is at.
pub(super) struct TurnDeliveries {
    /// `None` if this server exports no traces.
    tracer: Option<Arc<Tracer>>,
    /// The turn that was looked up last, so that each is looked up once.
    known: Option<TurnId>,
    open: Option<DeliverySpan>,
}

impl TurnDeliveries {
    pub(super) fn new(tracer: Option<Arc<Tracer>>) -> Self {
        Self {
            tracer,
            known: None,
            open: None,
        }
    }

    /// True while a turn is being delivered.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Counts frames that were written.
    pub(super) fn record_sent(&mut self, live: &LiveSession, frames: u64) {
        let Some(tracer) = &self.tracer else { return };
        if self.open.is_none()
            && let Some(turn) = live.current_turn()
            && self.known != Some(turn)
        {
            self.known = Some(turn);
            self.open = DeliverySpan::begin(tracer, turn, DeliveryWire::Session);
        }
        if let Some(open) = &mut self.open {
            open.add_frames(frames);
        }
    }

    /// The socket has taken everything: a turn that has ended is delivered.
    pub(super) fn record_drained(&mut self, live: &LiveSession) {
        if live.current_turn() != self.known {
            self.open = None;
        }
    }

    /// The connection ends: a turn that runs is not delivered.
    pub(super) fn close(&mut self, reason: &'static str) {
        if let Some(mut open) = self.open.take() {
            open.fail(reason);
        }
    }
}
