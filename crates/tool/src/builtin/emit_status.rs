//! Emits a status by its registered id. The id is not checked here: every status passes the
//! interceptor, which knows the registry and writes the text.

use serde_json::{Value, json};
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::code::ToolErrorClass;
use turnwire_event::port::{BoxFuture, Emission};
use turnwire_event::{Actor, Body};

use crate::input::InputFields;
use crate::tool::deliver;
use crate::tool::{Tool, ToolFailure, ToolInvocation};

/// Of an id; registered ones are shorter.
const ID_CHARS_MAX: usize = 128;

/// Emits `status.emitted` with the id of the input.
pub(crate) struct EmitStatusTool;

impl Tool for EmitStatusTool {
    fn name(&self) -> &str {
        "emit_status"
    }

    fn description(&self) -> &str {
        "Tells the person what is being done, by the id of a status."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"event_id": {"type": "string", "maxLength": ID_CHARS_MAX}},
            "required": ["event_id"],
            "additionalProperties": false,
        })
    }

    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move {
            let event_id = InputFields::new(&call.input, &["event_id"])?.text("event_id")?;
            if event_id.chars().count() > ID_CHARS_MAX {
                let message = format!("`event_id` must have at most {ID_CHARS_MAX} characters.");
                return Err(ToolFailure::invalid_input(message));
            }
            // The status is the agent's, not the tool's: the registry says who may emit it.
            let actor = match &call.context.agent {
                Some(agent) => Actor::subagent(agent),
                None => Actor::ORCHESTRATOR,
            };
            let body = Body::StatusEmitted(StatusEmitted {
                event_id: event_id.to_owned(),
                message: String::new(),
            });
            let emission = Emission {
                trace: call.context.trace.clone(),
                ..Emission::new(actor, body)
            };
            match deliver(&*call.emitter, emission).await {
                Ok(_) => Ok(json!("noted")),
                Err(refusal) => {
                    let message = format!("Not emitted: {refusal}.");
                    Err(ToolFailure::new(ToolErrorClass::Cancelled, message))
                }
            }
        })
    }
}
