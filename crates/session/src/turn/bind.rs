//! Binding a turn when it begins. A producer that breaks while it does fails that turn alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use turnwire_event::EventType;
use turnwire_event::body::turn::Versions;
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::port::{Bound, Emission, Gate, Onward, Outcome, Producer, TurnInput};

/// A gate that lets everything through as it is.
pub(crate) struct PassThroughGate;

impl Gate for PassThroughGate {
    fn take(&mut self, emission: Emission, _: Instant, out: Onward<'_>) {
        out(emission, None);
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn times(&self, _: EventType) -> bool {
        false
    }

    fn flush(&mut self, _: Onward<'_>) {}
}

/// Binds a turn to what answers it. If that breaks, the turn is bound to nothing, and fails.
pub(crate) fn bind(producer: &dyn Producer, input: &TurnInput) -> Bound {
    catch_unwind(AssertUnwindSafe(|| producer.bind(input))).unwrap_or_else(|_| {
        // The panic's text stays in the server's log.
        let (session, turn) = (input.session_id, input.turn_id);
        tracing::error!(%session, %turn, "a turn could not be bound");
        Bound {
            versions: Versions::default(),
            history: producer.history(),
            gate: Box::new(PassThroughGate),
            work: Box::new(|_| {
                Box::pin(async {
                    Outcome {
                        reason: None,
                        status: TurnStatus::Failed,
                        error: Some(ErrorCode::InternalError.into()),
                    }
                })
            }),
        }
    })
}
