//! The tool trait: a name, a schema, and a future that is stopped by being dropped.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::ToolUseId;
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::port::{BoxFuture, Emitter};

/// One use of a tool.
#[derive(Clone)]
pub struct Call {
    /// Which use.
    pub tool_use_id: ToolUseId,
    /// What the model wrote; always an object, otherwise unchecked.
    pub input: Value,
    /// Where events of the tool's own go.
    pub emitter: Arc<dyn Emitter>,
}

/// A tool gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class:?}: {told}")]
pub struct ToolFailure {
    /// Why, as events tell it.
    pub class: ToolErrorClass,
    /// What the model is told: plain words, never exception text, hosts or paths.
    pub told: String,
}

impl ToolFailure {
    /// The input does not fit; `told` says what would.
    pub fn invalid_input(told: impl Into<String>) -> Self {
        Self {
            class: ToolErrorClass::InvalidInput,
            told: told.into(),
        }
    }

    /// Something inside went wrong.
    pub fn internal(told: impl Into<String>) -> Self {
        Self {
            class: ToolErrorClass::Internal,
            told: told.into(),
        }
    }
}

/// Something a model can have done.
pub trait Tool: Send + Sync {
    /// Its name, unique in a toolbox.
    fn name(&self) -> &str;

    /// What it is good for, to the model.
    fn description(&self) -> &str;

    /// The JSON Schema of its input.
    fn input_schema(&self) -> Value;

    /// What kind of tool it is.
    fn tool_type(&self) -> ToolType {
        ToolType::Function
    }

    /// How long it may take; what the agent allows if it does not say.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Does it. Nothing happens before the future is polled, and dropping it stops the work.
    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>>;
}
