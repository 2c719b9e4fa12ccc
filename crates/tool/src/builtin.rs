//! Tools that run in this process: statuses, feedback, delegation, components, and trial tools.

mod trial;
mod emit_status;
mod feedback;
mod delegate;
mod render;

use std::sync::Arc;

use turnwire_event::{Clock, IdGenerator};
use turnwire_pack::BuiltinFunction;

use crate::pack_tool::PackTool;

pub(crate) use delegate::DelegateTool;
pub(crate) use render::RenderTool;

/// The tool of a [`BuiltinFunction`], with its own name and texts.
pub(crate) fn builtin(
    function: BuiltinFunction,
    clock: &Arc<dyn Clock>,
    id_generator: &Arc<dyn IdGenerator>,
) -> PackTool {
    let (clock, id_generator) = (Arc::clone(clock), Arc::clone(id_generator));
    match function {
        BuiltinFunction::Clock => trial::clock(clock),
        BuiltinFunction::Echo => trial::echo(),
        BuiltinFunction::Sleep => trial::sleep(),
        BuiltinFunction::Fail => trial::fail(),
        BuiltinFunction::Burst => trial::burst(id_generator),
        BuiltinFunction::EmitStatus => emit_status::emit_status(),
        BuiltinFunction::LlmFeedback => feedback::feedback(),
    }
}

#[cfg(test)]
mod tests;
