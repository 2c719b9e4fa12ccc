//! The tool trait: a name, a schema, and a future that is stopped by being dropped.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::ToolUseId;
use turnwire_event::code::{Reason, ToolErrorClass, ToolType};
use turnwire_event::port::{BoxFuture, Emitter};

use crate::scene::Scene;

/// One use of a tool.
#[derive(Clone)]
pub struct Call {
    /// Which use.
    pub tool_use_id: ToolUseId,
    /// What the model wrote; always an object, otherwise unchecked.
    pub input: Value,
    /// Where events of the tool's own go.
    pub emitter: Arc<dyn Emitter>,
    /// For whom and within what.
    pub scene: Arc<Scene>,
}

/// A data service did not do its part: the pair that dashboards join on (S1-145).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which service.
    pub enricher_id: String,
    /// Why.
    pub reason: Reason,
}

/// A tool gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class:?}: {told}")]
pub struct ToolFailure {
    /// Why, as events tell it.
    pub class: ToolErrorClass,
    /// What the model is told: plain words, never exception text, hosts or paths.
    pub told: String,
    /// The data service at fault, if one is (axis 2).
    pub fault: Option<Fault>,
    /// Whether the sub-agent that called fails with it (axis 1, S2-089). Otherwise its model is
    /// told and may try something else.
    pub fatal: bool,
}

impl ToolFailure {
    /// A failure that the model is told and may work around.
    pub fn new(class: ToolErrorClass, told: impl Into<String>) -> Self {
        Self {
            class,
            told: told.into(),
            fault: None,
            fatal: false,
        }
    }

    /// The input does not fit; `told` says what would.
    pub fn invalid_input(told: impl Into<String>) -> Self {
        Self::new(ToolErrorClass::InvalidInput, told)
    }

    /// Something inside went wrong.
    pub fn internal(told: impl Into<String>) -> Self {
        Self::new(ToolErrorClass::Internal, told)
    }

    /// The same, beyond repair: the sub-agent that called fails with it.
    #[must_use]
    pub fn fatal(self) -> Self {
        Self {
            fatal: true,
            ..self
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

    /// The status that a person is shown while it works.
    fn status(&self) -> Option<&str> {
        None
    }

    /// Whether what it gives is kept for sub-agents of later turns.
    fn remember(&self) -> bool {
        false
    }

    /// Whether a person must say yes before it acts.
    fn approval(&self) -> bool {
        false
    }

    /// The tool server it is behind, by its name in the pack.
    fn server(&self) -> Option<&str> {
        None
    }

    /// Whether it takes `input`, if it can say so without reading its schema anew.
    fn judge(&self, _input: &Value) -> Option<Result<(), ToolFailure>> {
        None
    }

    /// Does it. Nothing happens before the future is polled, and dropping it stops the work; a
    /// request that a data service already has is not cut, its answer is thrown away (S1-110).
    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>>;
}
