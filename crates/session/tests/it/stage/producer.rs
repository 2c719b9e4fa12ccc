//! Producers that do as a test says, and the gates their events pass.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::body::turn::Versions;
use turnwire_event::port::{
    Bound, BoxFuture, Emission, Gate, HistoryBudget, Onward, Outcome, Producer, TurnContext,
    TurnInput,
};

pub type Act = Arc<dyn Fn(TurnContext) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// Lets everything through as it is.
pub struct Through;

impl Gate for Through {
    fn take(&mut self, emission: Emission, _: Instant, out: Onward<'_>) {
        out(emission, None);
    }
    fn due(&self) -> Option<Instant> {
        None
    }
    fn flush(&mut self, _: Onward<'_>) {}
}

/// Makes the gate of a turn.
pub type Gates = Arc<dyn Fn() -> Box<dyn Gate> + Send + Sync>;

pub fn through() -> Gates {
    Arc::new(|| Box::new(Through))
}

/// A producer that does what a test wants, its events passing the gate a test wants.
pub struct Acting(pub Act, pub Gates);

impl Producer for Acting {
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

pub fn acting<F: Future<Output = Outcome> + Send + 'static>(
    act: impl Fn(TurnContext) -> F + Send + Sync + 'static,
) -> Act {
    Arc::new(move |turn| Box::pin(act(turn)))
}
