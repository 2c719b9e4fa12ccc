//! The ends of a turn: completed, cancelled, or closed by the sweep after a restart.

use turnwire_event::body::turn::{
    CancelRequested, PartialMessage, TurnCancelled, TurnCompleted, TurnError,
};
use turnwire_event::code::{CancelCode, ErrorCode, Phase, TurnStatus};
use turnwire_event::fold::{CloseCause, closing};
use turnwire_event::{Actor, Body, Epoch, Position, Sub, Timestamp};

use super::LogBuilder;

impl LogBuilder {
    /// Completes the turn successfully.
    pub(crate) fn end(&mut self, status: TurnStatus, error: Option<ErrorCode>) {
        self.end_with(status, error.map(Into::into));
    }

    /// Completes the turn with a status and an error.
    pub(crate) fn end_with(&mut self, status: TurnStatus, error: Option<TurnError>) {
        self.trace();
        let completed = TurnCompleted {
            status,
            usage: self.open.as_ref().expect("a turn").usage,
            error,
            reason: None,
            partial: None,
            paused: None,
        };
        self.emit(Actor::SYSTEM, Body::TurnCompleted(completed));
    }

    /// Appends the dispatch trace, which precedes every terminal event (S2-064).
    fn trace(&mut self) {
        let open = self.open.as_ref().expect("a turn");
        if let Some(traced) = open.dispatch.traced() {
            self.emit(Actor::ORCHESTRATOR, Body::DispatchTraced(traced));
        }
    }

    /// Cancels the turn and closes everything that is open, in order.
    pub(crate) fn cancel(&mut self, reason: &str) {
        let cancel_requested = CancelRequested::new("user", reason);
        self.emit(Actor::USER, Body::TurnCancelRequested(cancel_requested));
        let asked = self.events.last().expect("just emitted").timestamp;
        let reason = reason.to_owned();
        self.close(CloseCause::Cancelled {
            code: CancelCode::RequestCancelled,
            stops: None,
            reason,
            asked,
        });
    }

    /// Cancels the turn for a technical reason: no data for too long, or it never ran.
    pub(crate) fn stop(&mut self, code: CancelCode, phase: Phase, reason: &str) {
        let cancel_requested = CancelRequested::new("system", reason);
        self.emit(Actor::SYSTEM, Body::TurnCancelRequested(cancel_requested));
        self.trace();
        let cancelled = TurnCancelled {
            reason: reason.into(),
            code,
            phase,
            partial: PartialMessage {
                message_id: None,
                bytes: 0,
                kept_until: None,
            },
            receipt: Vec::new(),
        };
        self.emit(Actor::SYSTEM, Body::TurnCancelled(cancelled));
    }

    /// Ends the open turn like the server does.
    pub(crate) fn close(&mut self, end: CloseCause) {
        let open = self.open.as_ref().expect("a turn");
        let uses = open.message.as_ref().map(|m| m.open_tool_uses());
        for (block, id, input) in uses.unwrap_or_default() {
            self.tool_end(block, id, input);
        }
        let now = Timestamp::from_millis(self.ms + 7);
        for closing in closing(self.open.as_ref().expect("a turn"), &end, &[], now) {
            self.emit(closing.actor, closing.body);
        }
    }

    /// Ends the turn like the sweep after a crash. Its `message.complete` follows every transient event
    /// that a client can have received.
    pub(crate) fn sweep(&mut self, end: &CloseCause) {
        let now = Timestamp::from_millis(self.ms + 7);
        for closing in closing(self.open.as_ref().expect("a turn"), end, &[], now) {
            if closing.body.kind().is_persisted() {
                self.emit(closing.actor, closing.body);
            } else {
                let id = Position {
                    epoch: Epoch::FIRST,
                    seq: self.seq,
                    sub: Sub::LAST,
                };
                self.place(id, closing.actor, closing.body);
            }
        }
    }
}
