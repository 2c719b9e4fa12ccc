//! One turn, put together: what it is bound to, how much past it reads, and what answers it.

use std::sync::Arc;

use turnwire_event::body::turn::Versions;
use turnwire_event::port::{Emitter, HistoryBudget, TurnContext, Work};

use crate::cast::Cast;
use crate::turn;
use crate::witness::Witness;
use crate::writer;

/// A turn that is ready to be answered. With a gate it is what a producer binds.
pub struct Assembly {
    /// What it is bound to.
    pub versions: Versions,
    /// How much of the session's past it is shown.
    pub history: HistoryBudget,
    /// What answers it.
    pub work: Work,
}

impl Assembly {
    pub(crate) fn new(versions: Versions, cast: Arc<Cast>) -> Self {
        Self {
            versions,
            history: cast.means.options.history,
            work: Box::new(move |mut turn: TurnContext| {
                Box::pin(async move {
                    let witness = Arc::new(Witness::new(turn.emitter));
                    turn.emitter = Arc::clone(&witness) as Arc<dyn Emitter>;
                    let emitter = Arc::clone(&turn.emitter);
                    writer::scope(emitter, turn::run(&cast, turn, &witness)).await
                })
            }),
        }
    }
}
