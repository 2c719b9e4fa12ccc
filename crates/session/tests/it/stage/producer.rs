//! Producers whose work is a function of the test, and the gates of their events.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::body::turn::BoundVersions;
use turnwire_event::port::{
    BoundTurn, BoxFuture, Emission, EventGate, GateOutput, HistoryBudget, TurnContext, TurnInput,
    TurnOutcome, TurnProducer,
};

pub type WorkFn = Arc<dyn Fn(TurnContext) -> BoxFuture<'static, TurnOutcome> + Send + Sync>;

/// A gate that passes every event unchanged.
pub struct OpenGate;

impl EventGate for OpenGate {
    fn take(&mut self, emission: Emission, _: Instant, out: GateOutput<'_>) {
        out(emission, None);
    }
    fn due(&self) -> Option<Instant> {
        None
    }
    fn flush(&mut self, _: GateOutput<'_>) {}
}

/// Creates the gate of each turn.
pub type GateFactory = Arc<dyn Fn() -> Box<dyn EventGate> + Send + Sync>;

pub fn pass_through_gates() -> GateFactory {
    Arc::new(|| Box::new(OpenGate))
}

/// A producer with the work and the gate that a test gives it.
pub struct TestProducer(pub WorkFn, pub GateFactory);

impl TurnProducer for TestProducer {
    fn history(&self) -> HistoryBudget {
        HistoryBudget {
            messages_max: 4,
            bytes_max: 10_000,
        }
    }
    fn bind(&self, _: &TurnInput) -> BoundTurn {
        let act = self.0.clone();
        BoundTurn {
            relayed_to: None,
            experiment_arm: String::new(),
            verticals: Default::default(),
            versions: versions(),
            history: self.history(),
            gate: (self.1)(),
            work: Box::new(move |turn| act(turn)),
        }
    }
}

pub fn versions() -> BoundVersions {
    BoundVersions {
        agent_definition: "7".into(),
        prompt: "3".into(),
        ..BoundVersions::default()
    }
}

pub fn producer_fn<F: Future<Output = TurnOutcome> + Send + 'static>(
    act: impl Fn(TurnContext) -> F + Send + Sync + 'static,
) -> WorkFn {
    Arc::new(move |turn| Box::pin(act(turn)))
}
