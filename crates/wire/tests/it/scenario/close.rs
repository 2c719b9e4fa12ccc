//! How a log's turn ends: by itself, by a cancel, by a restart.

use turnwire_event::body::turn::{CancelRequested, Cancelled, Completed, Partial, TurnError};
use turnwire_event::code::{CancelCode, ErrorCode, Phase, TurnStatus};
use turnwire_event::fold::{End, closing};
use turnwire_event::{Actor, Body, Epoch, Position, Sub, Timestamp};

use super::Log;

impl Log {
    /// The turn ends by itself.
    pub(crate) fn end(&mut self, status: TurnStatus, error: Option<ErrorCode>) {
        self.end_with(status, error.map(Into::into));
    }

    /// The turn ends by itself, with all that is known of what failed.
    pub(crate) fn end_with(&mut self, status: TurnStatus, error: Option<TurnError>) {
        self.trace();
        let completed = Completed {
            status,
            usage: self.open.as_ref().expect("a turn").usage,
            error,
            reason: None,
            partial: None,
        };
        self.emit(Actor::SYSTEM, Body::TurnCompleted(completed));
    }

    /// What the turn's dispatch was; stands before every terminal (S2-064).
    fn trace(&mut self) {
        let open = self.open.as_ref().expect("a turn");
        if let Some(traced) = open.dispatch.traced() {
            self.emit(Actor::ORCHESTRATOR, Body::DispatchTraced(traced));
        }
    }

    /// Someone stops the turn, and everything in it ends in the one consistent order.
    pub(crate) fn cancel(&mut self, reason: &str) {
        let asked = CancelRequested {
            by: "user".into(),
            reason: reason.into(),
        };
        self.emit(Actor::USER, Body::TurnCancelRequested(asked));
        let asked = self.events.last().expect("just emitted").timestamp;
        let reason = reason.to_owned();
        self.close(End::Cancelled {
            stops: None,
            reason,
            asked,
        });
    }

    /// Something outside stops the turn: nothing came from it for too long, or it never ran.
    pub(crate) fn stop(&mut self, code: CancelCode, phase: Phase, reason: &str) {
        let asked = CancelRequested {
            by: "system".into(),
            reason: reason.into(),
        };
        self.emit(Actor::SYSTEM, Body::TurnCancelRequested(asked));
        self.trace();
        let stopped = Cancelled {
            reason: reason.into(),
            code,
            phase,
            partial: Partial {
                message_id: None,
                bytes: 0,
            },
            receipt: Vec::new(),
        };
        self.emit(Actor::SYSTEM, Body::TurnCancelled(stopped));
    }

    /// Ends the open turn as the server does.
    pub(crate) fn close(&mut self, end: End) {
        let open = self.open.as_ref().expect("a turn");
        let uses = open.message.as_ref().map(|m| m.open_tool_uses());
        for (block, id, input) in uses.unwrap_or_default() {
            self.tool_end(block, id, input);
        }
        let now = Timestamp::from_millis(self.ms + 7);
        for closing in closing(self.open.as_ref().expect("a turn"), &end, now) {
            self.emit(closing.actor, closing.body);
        }
    }

    /// The server died and came back: the sweep ends the turn. Its `message.complete` takes the
    /// place after every transient event that a client can have seen.
    pub(crate) fn sweep(&mut self, end: &End) {
        let now = Timestamp::from_millis(self.ms + 7);
        for closing in closing(self.open.as_ref().expect("a turn"), end, now) {
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
