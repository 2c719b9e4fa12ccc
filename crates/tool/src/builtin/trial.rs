//! Tools to try out and test turns with: each does one thing, such as wait, fail or emit events.

mod burst;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::Clock;
use turnwire_pack::BuiltinFunction;

use crate::input::{InputFields, object_schema};
use crate::pack_tool::PackTool;
use crate::tool::{ToolFailure, ToolInvocation};

pub(super) use burst::burst;

const SLEEP_MS_MAX: u64 = 60_000;

/// A tool that returns the time of `clock`.
pub(super) fn clock(clock: Arc<dyn Clock>) -> PackTool {
    PackTool::builtin(
        BuiltinFunction::Clock,
        "clock",
        "Tells the current time in UTC.",
        object_schema(json!({}), &[]),
        move |call: ToolInvocation| {
            let clock = Arc::clone(&clock);
            async move {
                InputFields::new(&call.input, &[])?;
                Ok(Value::String(clock.now().to_string()))
            }
        },
    )
}

/// A tool that returns its input.
pub(super) fn echo() -> PackTool {
    PackTool::builtin(
        BuiltinFunction::Echo,
        "echo",
        "Gives back the text it is given.",
        object_schema(json!({"text": {"type": "string"}}), &["text"]),
        |call: ToolInvocation| async move {
            let text = InputFields::new(&call.input, &["text"])?.text("text")?;
            Ok(Value::from(text))
        },
    )
}

/// A tool that takes time, as an object for cancels.
pub(super) fn sleep() -> PackTool {
    let ms = json!({"ms": {"type": "integer", "minimum": 0, "maximum": SLEEP_MS_MAX}});
    let mut tool = PackTool::builtin(
        BuiltinFunction::Sleep,
        "sleep",
        "Waits for a number of milliseconds, at most a minute.",
        object_schema(ms, &["ms"]),
        |call: ToolInvocation| async move {
            let ms = InputFields::new(&call.input, &["ms"])?.integer("ms", 0..=SLEEP_MS_MAX)?;
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(Value::String(format!("slept {ms} ms")))
        },
    );
    // More than the longest sleep, so that no sleep times out.
    tool.timeout = Some(Duration::from_millis(SLEEP_MS_MAX + 5_000));
    tool
}

/// A tool that fails with `message`; with `fatal`, the calling sub-agent fails too.
pub(super) fn fail() -> PackTool {
    let properties = json!({"message": {"type": "string"}, "fatal": {"type": "boolean"}});
    PackTool::builtin(
        BuiltinFunction::Fail,
        "fail",
        "Always fails. Good for trying what happens then.",
        object_schema(properties, &[]),
        |call: ToolInvocation| async move {
            let input = InputFields::new(&call.input, &["message", "fatal"])?;
            let message = input.optional_text("message")?;
            let failure = ToolFailure::internal(message.unwrap_or("This tool always fails."));
            Err(match input.optional_flag("fatal")? {
                Some(true) => failure.fatal(),
                Some(false) | None => failure,
            })
        },
    )
}

#[cfg(test)]
mod tests;
