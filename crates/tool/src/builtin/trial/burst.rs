//! A tool that emits many events: `tool.called` and `tool.completed` for each step, as load for the
//! log, the hub and every client.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::body::tool::{ToolCalled, ToolCompleted};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::{Emission, EmitRefusal};
use turnwire_event::{Actor, Body, IdGenerator, ToolUseId};
use turnwire_pack::BuiltinFunction;

use crate::input::{InputFields, object_schema};
use crate::pack_tool::PackTool;
use crate::tool::{ToolFailure, ToolInvocation, deliver};

/// Twice as many events: more than one replay holds, and fewer than a log may have.
const COUNT_MAX: u64 = 10_000;
/// The tool name of the steps, which no model can call.
const STEP: &str = "burst.step";
/// Steps between two yields to other tasks.
const YIELD_EVERY: u64 = 64;

/// A tool that emits `count` pairs of events. The ids of the steps come from `id_generator`.
pub(in crate::builtin) fn burst(id_generator: Arc<dyn IdGenerator>) -> PackTool {
    let count = json!({"count": {"type": "integer", "minimum": 1, "maximum": COUNT_MAX}});
    PackTool::builtin(
        BuiltinFunction::Burst,
        "burst",
        "Writes a number of steps to the log, two events each.",
        object_schema(count, &["count"]),
        move |call| run(call, Arc::clone(&id_generator)),
    )
}

async fn run(
    call: ToolInvocation,
    id_generator: Arc<dyn IdGenerator>,
) -> Result<Value, ToolFailure> {
    let count = InputFields::new(&call.input, &["count"])?.integer("count", 1..=COUNT_MAX)?;
    for n in 1..=count {
        let id = ToolUseId(id_generator.ulid());
        if emit_step(&call, id, n, count).await.is_err() {
            let message = format!("Stopped at step {n} of {count}.");
            return Err(ToolFailure::new(ToolErrorClass::Cancelled, message));
        }
        if n % YIELD_EVERY == 0 {
            tokio::task::yield_now().await;
        }
    }
    Ok(json!({"steps": count, "events": 2 * count}))
}

/// Emits one step. It has no effects, so its start need not be durable before its end.
async fn emit_step(
    call: &ToolInvocation,
    id: ToolUseId,
    n: u64,
    count: u64,
) -> Result<(), EmitRefusal> {
    let called = Body::ToolCalled(ToolCalled {
        upstream_id: None,
        tool_use_id: id,
        tool_name: STEP.to_owned(),
        tool_type: ToolType::Function,
        input_summary: format!("step {n} of {count}"),
    });
    let result_summary = n.to_string();
    let completed = Body::ToolCompleted(ToolCompleted {
        upstream_id: None,
        tool_use_id: id,
        tool_name: STEP.to_owned(),
        tool_type: ToolType::Function,
        duration_ms: 0,
        result_sha256: sha256_hex(result_summary.as_bytes()),
        result_summary,
    });
    for body in [called, completed] {
        let emission = Emission::new(Actor::tool("burst"), body);
        deliver(&*call.emitter, emission).await?;
    }
    Ok(())
}
