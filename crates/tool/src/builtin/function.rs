//! A function of this process as a tool, with its own name and texts.

use serde_json::Value;
use turnwire_event::code::ToolType;
use turnwire_pack::{BuiltinFunction, ToolDef, ToolKind};

use crate::pack_tool::{PackTool, plain_def};
use crate::tool::{ToolFailure, ToolInvocation};

/// The tool of `function`. A pack may give it other texts with [`PackTool::renamed`].
pub(super) fn function_tool<R>(
    function: BuiltinFunction,
    name: &str,
    description: &str,
    input_schema: Value,
    run: impl Fn(ToolInvocation) -> R + Send + Sync + 'static,
) -> PackTool
where
    R: Future<Output = Result<Value, ToolFailure>> + Send + 'static,
{
    let kind = ToolKind::Direct(function);
    let def = ToolDef {
        input_schema,
        ..plain_def(name.to_owned(), description.to_owned(), kind)
    };
    PackTool::new(def, ToolType::Function, None, run)
}
