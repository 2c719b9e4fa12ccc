//! Tools for trials and tests of turns: one small file and one behaviour each.

mod clock;
mod echo;
mod sleep;
mod fail;
mod burst;

use std::sync::Arc;

use turnwire_event::{Clock, IdGenerator};

use crate::tool::Tool;

pub(crate) use burst::BurstTool;
pub(crate) use clock::ClockTool;
pub(crate) use echo::EchoTool;
pub(crate) use fail::FailTool;
pub(crate) use sleep::SleepTool;

/// One tool of each kind.
pub(crate) fn tools(clock: Arc<dyn Clock>, mint: Arc<dyn IdGenerator>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ClockTool::new(clock)),
        Arc::new(EchoTool),
        Arc::new(SleepTool),
        Arc::new(FailTool),
        Arc::new(BurstTool::new(mint)),
    ]
}

#[cfg(test)]
mod tests;
