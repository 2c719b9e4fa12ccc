//! The sleeper: takes as long as it is told to, so that there is something to stop.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::port::BoxFuture;

use crate::input::Input;
use crate::tool::{Call, Tool, ToolFailure};

/// The longest sleep.
const MS_MAX: u64 = 60_000;

/// Sleeps for `ms`.
pub struct Sleep;

impl Tool for Sleep {
    fn name(&self) -> &str {
        "sleep"
    }

    fn description(&self) -> &str {
        "Waits for a number of milliseconds, at most a minute."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"ms": {"type": "integer", "minimum": 0, "maximum": MS_MAX}},
            "required": ["ms"],
            "additionalProperties": false,
        })
    }

    fn timeout(&self) -> Option<Duration> {
        // A little more than the longest sleep, so that no allowed sleep is cut.
        Some(Duration::from_millis(MS_MAX + 5_000))
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move {
            let ms = Input::new(&call.input, &["ms"])?.integer("ms", 0..=MS_MAX)?;
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(Value::String(format!("slept {ms} ms")))
        })
    }
}
