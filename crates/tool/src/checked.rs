//! A tool whose input is checked against its schema before it acts. What does not fit is told to
//! the model in one bounded sentence, and the tool never hears of it.

use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use serde_json::{Value, json};
use turnwire_event::code::ToolType;
use turnwire_event::port::BoxFuture;
use turnwire_pack::complexity::{self, SchemaCost};

use crate::shelf::size;
use crate::tool::{Call, Tool, ToolFailure};

/// Of an input; far more than a question needs.
pub(crate) const INPUT_BYTES_MAX: usize = 64 * 1_024;
/// Of a sentence about an input that does not fit.
pub(crate) const TOLD_CHARS_MAX: usize = 300;

/// The input schema of a tool is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadSchema(pub(crate) String);

/// The schema of an input, ready to judge one.
#[derive(Debug)]
pub(crate) struct InputSchema {
    text: Value,
    validator: Validator,
    cost: SchemaCost,
}

impl InputSchema {
    /// The schema that `text` is. Null is any object. Nothing is fetched for it. One that could
    /// take for ever is refused: a check cannot be stopped.
    pub(crate) fn new(text: &Value) -> Result<Self, BadSchema> {
        let text = match text {
            Value::Null => json!({"type": "object"}),
            Value::Object(_) => text.clone(),
            _ => return Err(BadSchema("it must be an object".to_owned())),
        };
        Self::judging(text.clone(), &text)
    }

    /// The schema of a tool that checks its input itself: a pattern that is not tried here is left
    /// to it, and shown to the model all the same.
    pub(crate) fn checked_again(text: &Value) -> Result<Self, BadSchema> {
        Self::judging(
            text.clone(),
            &complexity::without_unsupported_patterns(text),
        )
    }

    fn judging(text: Value, judge: &Value) -> Result<Self, BadSchema> {
        let cost = SchemaCost::new(judge).map_err(|why| BadSchema(bounded(why.to_string())))?;
        let validator = complexity::validator(judge);
        let validator = validator.map_err(|why| BadSchema(bounded(why.to_string())))?;
        Ok(Self {
            text,
            validator,
            cost,
        })
    }

    /// The schema as a model is shown it.
    pub(crate) fn text(&self) -> &Value {
        &self.text
    }

    /// Whether `input` fits. Its size comes first, and then the steps that judging it takes: a
    /// thread that judges does nothing else, and hears no cancel.
    pub(crate) fn check(&self, input: &Value) -> Result<(), ToolFailure> {
        if !input.is_object() {
            return Err(ToolFailure::invalid_input("The input must be an object."));
        }
        if size(input) > INPUT_BYTES_MAX {
            let told = format!("The input is larger than {INPUT_BYTES_MAX} bytes.");
            return Err(ToolFailure::invalid_input(told));
        }
        if !self.cost.allows(input) {
            let told = "The input is too large and too deep to be checked; write a simpler one.";
            return Err(ToolFailure::invalid_input(told));
        }
        self.validator.validate(input).map_err(|why| {
            let told = format!("The input does not fit at `{}`: {why}", why.instance_path());
            ToolFailure::invalid_input(bounded(told))
        })
    }
}

fn bounded(told: String) -> String {
    match told.char_indices().nth(TOLD_CHARS_MAX) {
        Some((end, _)) => told[..end].to_owned(),
        None => told,
    }
}

/// A tool behind the check of its own input schema.
pub(crate) struct Checked {
    inner: Arc<dyn Tool>,
    schema: Arc<InputSchema>,
}

impl Checked {
    pub(crate) fn new(inner: Arc<dyn Tool>) -> Result<Self, BadSchema> {
        let schema = Arc::new(InputSchema::new(&inner.input_schema())?);
        Ok(Self { inner, schema })
    }
}

impl Tool for Checked {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn description(&self) -> &str {
        self.inner.description()
    }

    fn input_schema(&self) -> Value {
        self.schema.text().clone()
    }

    fn tool_type(&self) -> ToolType {
        self.inner.tool_type()
    }

    fn timeout(&self) -> Option<Duration> {
        self.inner.timeout()
    }

    fn status(&self) -> Option<&str> {
        self.inner.status()
    }

    fn remember(&self) -> bool {
        self.inner.remember()
    }

    fn approval(&self) -> bool {
        self.inner.approval()
    }

    fn server(&self) -> Option<&str> {
        self.inner.server()
    }

    fn judge(&self, input: &Value) -> Option<Result<(), ToolFailure>> {
        Some(self.schema.check(input))
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        // Made only for an input that fits: a tool may begin something as soon as it is asked.
        let (inner, schema) = (Arc::clone(&self.inner), Arc::clone(&self.schema));
        Box::pin(async move {
            schema.check(&call.input)?;
            inner.run(call).await
        })
    }
}

#[cfg(test)]
mod tests;
