//! In-process tools for trying what a turn can do: each is one small file and one behaviour.

mod clock;
mod echo;
mod sleep;
mod fail;
mod burst;

use std::sync::Arc;

use turnwire_event::{Clock, Mint};

use crate::tool::Tool;

pub use burst::Burst;
pub use clock::ClockTool;
pub use echo::Echo;
pub use fail::Fail;
pub use sleep::Sleep;

/// One of each.
pub(crate) fn tools(clock: Arc<dyn Clock>, mint: Arc<dyn Mint>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ClockTool::new(clock)),
        Arc::new(Echo),
        Arc::new(Sleep),
        Arc::new(Fail),
        Arc::new(Burst::new(mint)),
    ]
}

#[cfg(test)]
mod tests;
