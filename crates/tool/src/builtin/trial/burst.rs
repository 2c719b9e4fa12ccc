//! A tool that emits many events: `tool.called` and `tool.completed` for each step, as load for the
//! log, the hub and every client.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::body::tool::{ToolCalled, ToolCompleted};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::{BoxFuture, Emission, EmitRefusal};
use turnwire_event::{Actor, Body, IdGenerator, ToolUseId};

use crate::input::InputFields;
use crate::tool::deliver;
use crate::tool::{Tool, ToolFailure, ToolInvocation};

/// Twice as many events: more than one replay holds, and fewer than a log may have.
const COUNT_MAX: u64 = 10_000;
/// The tool name of the steps, which no model can call.
const STEP: &str = "burst.step";
/// Steps between two yields to other tasks.
const YIELD_EVERY: u64 = 64;

/// Emits `count` pairs of events.
pub(crate) struct BurstTool {
    mint: Arc<dyn IdGenerator>,
}

impl BurstTool {
    /// The ids of the steps come from `mint`.
    pub(crate) fn new(mint: Arc<dyn IdGenerator>) -> Self {
        Self { mint }
    }
}

impl Tool for BurstTool {
    fn name(&self) -> &str {
        "burst"
    }

    fn description(&self) -> &str {
        "Writes a number of steps to the log, two events each."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"count": {"type": "integer", "minimum": 1, "maximum": COUNT_MAX}},
            "required": ["count"],
            "additionalProperties": false,
        })
    }

    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let mint = Arc::clone(&self.mint);
        Box::pin(async move {
            let count =
                InputFields::new(&call.input, &["count"])?.integer("count", 1..=COUNT_MAX)?;
            let actor = Actor::tool("burst");
            for n in 1..=count {
                let id = ToolUseId(mint.ulid());
                if emit_step(&call, &actor, id, n, count).await.is_err() {
                    let message = format!("Stopped at step {n} of {count}.");
                    return Err(ToolFailure::new(ToolErrorClass::Cancelled, message));
                }
                if n % YIELD_EVERY == 0 {
                    tokio::task::yield_now().await;
                }
            }
            Ok(json!({"steps": count, "events": 2 * count}))
        })
    }
}

/// Emits one step. It has no effects, so its start need not be durable before its end.
async fn emit_step(
    call: &ToolInvocation,
    actor: &Actor,
    id: ToolUseId,
    n: u64,
    count: u64,
) -> Result<(), EmitRefusal> {
    let called = Body::ToolCalled(ToolCalled {
        tool_use_id: id,
        tool_name: STEP.to_owned(),
        tool_type: ToolType::Function,
        input_summary: format!("step {n} of {count}"),
    });
    deliver(&*call.emitter, Emission::new(actor.clone(), called)).await?;
    let result_summary = n.to_string();
    let completed = Body::ToolCompleted(ToolCompleted {
        tool_use_id: id,
        tool_name: STEP.to_owned(),
        tool_type: ToolType::Function,
        duration_ms: 0,
        result_sha256: sha256_hex(result_summary.as_bytes()),
        result_summary,
    });
    deliver(&*call.emitter, Emission::new(actor.clone(), completed)).await?;
    Ok(())
}
