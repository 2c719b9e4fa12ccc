//! Tells what is being done, by a registered id. Whether the id may be used is not judged here:
//! every status passes the interceptor, which knows the registry and writes the words.

use serde_json::{Value, json};
use turnwire_event::body::status::Emitted;
use turnwire_event::code::ToolErrorClass;
use turnwire_event::port::{BoxFuture, Emission};
use turnwire_event::{Actor, Body};

use crate::deliver::deliver;
use crate::input::Input;
use crate::tool::{Call, Tool, ToolFailure};

/// Of an id; registered ones are shorter.
const ID_CHARS_MAX: usize = 128;

/// Emits `status.emitted` with the id it is given.
pub struct EmitStatus;

impl Tool for EmitStatus {
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

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move {
            let event_id = Input::new(&call.input, &["event_id"])?.text("event_id")?;
            if event_id.chars().count() > ID_CHARS_MAX {
                let told = format!("`event_id` must have at most {ID_CHARS_MAX} characters.");
                return Err(ToolFailure::invalid_input(told));
            }
            // The status is the agent's, not the tool's: the registry says who may emit it.
            let actor = match &call.scene.agent {
                Some(agent) => Actor::subagent(agent),
                None => Actor::ORCHESTRATOR,
            };
            let body = Body::StatusEmitted(Emitted {
                event_id: event_id.to_owned(),
                message: String::new(),
            });
            let emission = Emission {
                trace: call.scene.trace.clone(),
                ..Emission::new(actor, body)
            };
            match deliver(&*call.emitter, emission).await {
                Ok(_) => Ok(json!("noted")),
                Err(refusal) => {
                    let told = format!("Not told: {refusal}.");
                    Err(ToolFailure::new(ToolErrorClass::Cancelled, told))
                }
            }
        })
    }
}
