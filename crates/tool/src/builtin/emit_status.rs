//! Emits a status by its registered id. The id is not checked here: every status passes the
//! interceptor, which knows the registry and writes the text.

use serde_json::{Value, json};
use turnwire_event::Body;
use turnwire_event::body::status::StatusEmitted;
use turnwire_pack::BuiltinFunction;

use crate::input::{InputFields, object_schema};
use crate::pack_tool::PackTool;
use crate::tool::{ToolFailure, ToolInvocation};

/// The limit of an id; registered ones are shorter.
const ID_CHARS_MAX: usize = 128;

/// A tool that emits `status.emitted` with the id of the input.
pub(super) fn emit_status() -> PackTool {
    let event_id = json!({"event_id": {"type": "string", "maxLength": ID_CHARS_MAX}});
    PackTool::builtin(
        BuiltinFunction::EmitStatus,
        "emit_status",
        "Tells the person what is being done, by the id of a status.",
        object_schema(event_id, &["event_id"]),
        run,
    )
}

async fn run(call: ToolInvocation) -> Result<Value, ToolFailure> {
    let event_id = InputFields::new(&call.input, &["event_id"])?.text("event_id")?;
    ToolFailure::require(event_id.chars().count() <= ID_CHARS_MAX, || {
        format!("`event_id` must have at most {ID_CHARS_MAX} characters.")
    })?;
    let body = Body::StatusEmitted(StatusEmitted {
        event_id: event_id.to_owned(),
        message: String::new(),
        invocation_id: None,
    });
    // The status is the agent's, not the tool's: the registry says who may emit it.
    let emitted = call.emit(call.context.actor(), body).await;
    emitted.map_err(|refusal| ToolFailure::refused("emitted", refusal))?;
    Ok(json!("noted"))
}
