//! A tool that takes time, as an object for cancels.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::port::BoxFuture;

use crate::input::InputFields;
use crate::tool::{Tool, ToolFailure, ToolInvocation};

const MS_MAX: u64 = 60_000;

pub(crate) struct SleepTool;

impl Tool for SleepTool {
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
        // More than the longest sleep, so that no sleep times out.
        Some(Duration::from_millis(MS_MAX + 5_000))
    }

    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move {
            let ms = InputFields::new(&call.input, &["ms"])?.integer("ms", 0..=MS_MAX)?;
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(Value::String(format!("slept {ms} ms")))
        })
    }
}
