//! The clock: tells the time it is given by the house's own clock.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwire_event::Clock;
use turnwire_event::port::BoxFuture;

use crate::input::Input;
use crate::tool::{Call, Tool, ToolFailure};

/// Tells the time.
pub struct ClockTool {
    clock: Arc<dyn Clock>,
}

impl ClockTool {
    /// Tells the time of `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
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

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let clock = Arc::clone(&self.clock);
        Box::pin(async move {
            Input::new(&call.input, &[])?;
            Ok(Value::String(clock.now().to_string()))
        })
    }
}
