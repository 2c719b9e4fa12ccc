//! Producers whose work is a function of the test, and the gates of their events.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::body::turn::Versions;
use turnwire_event::port::{
    Bound, BoxFuture, Emission, Gate, HistoryBudget, Onward, Outcome, Producer, TurnContext,
    TurnInput,
};

pub type WorkFn = Arc<dyn Fn(TurnContext) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// A gate that passes every event unchanged.
pub struct OpenGate;

impl Gate for OpenGate {
    fn take(&mut self, emission: Emission, _: Instant, out: Onward<'_>) {
        out(emission, None);
    }
    fn due(&self) -> Option<Instant> {
        None
    }
    fn flush(&mut self, _: Onward<'_>) {}
}

/// Creates the gate of each turn.
pub type GateFactory = Arc<dyn Fn() -> Box<dyn Gate> + Send + Sync>;

pub fn pass_through_gates() -> GateFactory {
    Arc::new(|| Box::new(OpenGate))
}

/// A producer with the work and the gate that a test gives it.
pub struct TestProducer(pub WorkFn, pub GateFactory);

impl Producer for TestProducer {
    fn history(&self) -> HistoryBudget {
        HistoryBudget {
            messages_max: 4,
            bytes_max: 10_000,
        }
    }
    fn bind(&self, _: &TurnInput) -> Bound {
        let act = self.0.clone();
        Bound {
            versions: versions(),
            history: self.history(),
            gate: (self.1)(),
            work: Box::new(move |turn| act(turn)),
        }
    }
}

pub fn versions() -> Versions {
    Versions {
        agent_definition: "7".into(),
        prompt: "3".into(),
        ..Versions::default()
    }
}

pub fn producer_fn<F: Future<Output = Outcome> + Send + 'static>(
    act: impl Fn(TurnContext) -> F + Send + Sync + 'static,
) -> WorkFn {
    Arc::new(move |turn| Box::pin(act(turn)))
}
