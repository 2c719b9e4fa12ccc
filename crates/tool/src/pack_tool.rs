//! A tool that a pack defines: the definition and the action behind it. The definition has the name,
//! the texts and the flags; the action is all that differs between the kinds of tools.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::ToolType;
use turnwire_event::port::BoxFuture;
use turnwire_pack::ToolDef;

use crate::input::{InputSchema, InputSchemaError};
use crate::tool::{Tool, ToolFailure, ToolInvocation};

/// What a [`PackTool`] does.
pub(crate) trait ToolAction: Send + Sync + 'static {
    /// Removes fields that a model must not set, before the input is checked.
    fn clean_input(&self, input: Value) -> Value {
        input
    }

    /// Runs the tool, as [`Tool::run`] does.
    fn run(&self, call: ToolInvocation) -> impl Future<Output = Result<Value, ToolFailure>> + Send;
}

/// A [`ToolAction`] without its type.
trait DynAction: Send + Sync {
    fn clean(&self, input: Value) -> Value;

    fn start(
        self: Arc<Self>,
        call: ToolInvocation,
    ) -> BoxFuture<'static, Result<Value, ToolFailure>>;
}

impl<A: ToolAction> DynAction for A {
    fn clean(&self, input: Value) -> Value {
        self.clean_input(input)
    }

    fn start(
        self: Arc<Self>,
        call: ToolInvocation,
    ) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        Box::pin(async move { self.run(call).await })
    }
}

/// A tool of a pack.
pub(crate) struct PackTool {
    def: ToolDef,
    tool_type: ToolType,
    timeout: Option<Duration>,
    /// The name of the MCP server that has the tool.
    server: Option<Arc<str>>,
    /// Checks every input; `None` if the action does.
    schema: Option<Arc<InputSchema>>,
    action: Arc<dyn DynAction>,
}

impl PackTool {
    /// A tool whose action checks its input.
    pub(crate) fn new(
        def: ToolDef,
        tool_type: ToolType,
        timeout: Option<Duration>,
        action: impl ToolAction,
    ) -> Self {
        Self {
            def,
            tool_type,
            timeout,
            server: None,
            schema: None,
            action: Arc::new(action),
        }
    }

    /// Checks every input against the schema of the definition.
    pub(crate) fn checked(self) -> Result<Self, InputSchemaError> {
        let schema = Arc::new(InputSchema::new(&self.def.input_schema)?);
        Ok(self.with_schema(schema))
    }

    /// Checks every input against `schema`, which replaces that of the definition.
    pub(crate) fn with_schema(self, schema: Arc<InputSchema>) -> Self {
        Self {
            schema: Some(schema),
            ..self
        }
    }

    pub(crate) fn with_server(self, server: Arc<str>) -> Self {
        Self {
            server: Some(server),
            ..self
        }
    }
}

impl Tool for PackTool {
    fn name(&self) -> &str {
        &self.def.name
    }

    fn description(&self) -> &str {
        &self.def.description
    }

    fn input_schema(&self) -> Value {
        let checked = self.schema.as_ref().map(|schema| schema.text());
        checked.unwrap_or(&self.def.input_schema).clone()
    }

    fn tool_type(&self) -> ToolType {
        self.tool_type
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn status(&self) -> Option<&str> {
        self.def.status.as_deref()
    }

    fn remember(&self) -> bool {
        self.def.remember
    }

    fn approval(&self) -> bool {
        self.def.approval
    }

    fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    fn check_input(&self, input: &Value) -> Option<Result<(), ToolFailure>> {
        self.schema.as_ref().map(|schema| schema.check(input))
    }

    fn run(&self, mut call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let (schema, action) = (self.schema.clone(), Arc::clone(&self.action));
        Box::pin(async move {
            call.input = action.clean(call.input);
            if let Some(schema) = schema {
                schema.check(&call.input)?;
            }
            action.start(call).await
        })
    }
}

#[cfg(test)]
mod tests;
