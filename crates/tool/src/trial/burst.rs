//! The one that emits many events: a pair of `tool.called` and `tool.completed` for each of its
//! steps, so that the log, the hub and every client get something to chew on.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::body::tool::{Called, Completed};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::{BoxFuture, Emission, Refusal};
use turnwire_event::{Actor, Body, Mint, ToolUseId};

use crate::deliver::deliver;
use crate::input::Input;
use crate::tool::{Call, Tool, ToolFailure};

/// Twice as many events: what one replay may hold is passed, what a log may hold is not.
const COUNT_MAX: u64 = 10_000;
/// The name of its steps, which no model can call.
const STEP: &str = "burst.step";
/// Steps between two moments at which other tasks get their turn.
const YIELD_EVERY: u64 = 64;

/// Emits `count` pairs of events.
pub struct Burst {
    mint: Arc<dyn Mint>,
}

impl Burst {
    /// Steps are named by `mint`.
    pub fn new(mint: Arc<dyn Mint>) -> Self {
        Self { mint }
    }
}

impl Tool for Burst {
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

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let mint = Arc::clone(&self.mint);
        Box::pin(async move {
            let count = Input::new(&call.input, &["count"])?.integer("count", 1..=COUNT_MAX)?;
            let actor = Actor::tool("burst");
            for n in 1..=count {
                let id = ToolUseId(mint.ulid());
                if step(&call, &actor, id, n, count).await.is_err() {
                    let told = format!("Stopped at step {n} of {count}.");
                    return Err(ToolFailure::new(ToolErrorClass::Cancelled, told));
                }
                if n % YIELD_EVERY == 0 {
                    tokio::task::yield_now().await;
                }
            }
            Ok(json!({"steps": count, "events": 2 * count}))
        })
    }
}

/// One step. It acts on nothing, so its beginning need not be durable before its end.
async fn step(
    call: &Call,
    actor: &Actor,
    id: ToolUseId,
    n: u64,
    count: u64,
) -> Result<(), Refusal> {
    let called = Body::ToolCalled(Called {
        tool_use_id: id,
        tool_name: STEP.to_owned(),
        tool_type: ToolType::Function,
        input_summary: format!("step {n} of {count}"),
    });
    deliver(&*call.emitter, Emission::new(actor.clone(), called)).await?;
    let result_summary = n.to_string();
    let completed = Body::ToolCompleted(Completed {
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
