//! A tool that returns the current time.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::Clock;
use turnwire_event::port::BoxFuture;

use crate::input::InputFields;
use crate::tool::{Tool, ToolFailure, ToolInvocation};

/// Returns the time of a [`Clock`].
pub(crate) struct ClockTool {
    clock: Arc<dyn Clock>,
}

impl ClockTool {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl Tool for ClockTool {
    fn name(&self) -> &str {
        "clock"
    }

    fn description(&self) -> &str {
        "Tells the current time in UTC."
    }

    fn input_schema(&self) -> Value {
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    }

    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let clock = Arc::clone(&self.clock);
        Box::pin(async move {
            InputFields::new(&call.input, &[])?;
            Ok(Value::String(clock.now().to_string()))
        })
    }
}
