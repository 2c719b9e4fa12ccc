//! Binding a turn to its producer. A producer that panics while binding fails that turn alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use turnwire_event::EventType;
use turnwire_event::body::turn::BoundVersions;
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::metric::SubAgentVerticals;
use turnwire_event::port::{
    BoundTurn, Emission, EventGate, GateOutput, TurnInput, TurnOutcome, TurnProducer,
};

/// An [`EventGate`] that passes every event unchanged.
pub(crate) struct PassThroughGate;

impl EventGate for PassThroughGate {
    fn take(&mut self, emission: Emission, _: Instant, out: GateOutput<'_>) {
        out(emission, None);
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn times(&self, _: EventType) -> bool {
        false
    }

    fn flush(&mut self, _: GateOutput<'_>) {}
}

/// Binds a turn with [`TurnProducer::bind`]. After a panic the turn is bound to work that fails at once.
pub(crate) fn bind(producer: &dyn TurnProducer, input: &TurnInput) -> BoundTurn {
    catch_unwind(AssertUnwindSafe(|| producer.bind(input))).unwrap_or_else(|_| {
        // The panic's text is only in the server's log.
        let (session, turn) = (input.session_id, input.turn_id);
        tracing::error!(%session, %turn, "the producer panicked while binding a turn");
        BoundTurn {
            experiment_arm: String::new(),
            verticals: SubAgentVerticals::default(),
            versions: BoundVersions::default(),
            history: producer.history(),
            relayed_to: None,
            gate: Box::new(PassThroughGate),
            work: Box::new(|_| {
                Box::pin(async {
                    TurnOutcome {
                        cancelled: None,
                        reason: None,
                        status: TurnStatus::Failed,
                        error: Some(ErrorCode::InternalError.into()),
                    }
                })
            }),
        }
    })
}
