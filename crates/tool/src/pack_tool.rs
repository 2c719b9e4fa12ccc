//! A tool that a pack defines: the definition and the action behind it. The definition has the name,
//! the texts and the flags; the action is all that differs between the kinds of tools.

use std::convert::identity;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::ToolType;
use turnwire_event::port::BoxFuture;
use turnwire_pack::{BuiltinFunction, ToolDef, ToolKind};

use crate::input::InputSchema;
use crate::secrets::Secrets;
use crate::tool::{Tool, ToolFailure, ToolInvocation};

/// What a [`PackTool`] does, as [`Tool::run`] does it.
type ToolAction =
    dyn Fn(ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> + Send + Sync;

/// A tool of a pack.
pub(crate) struct PackTool {
    def: ToolDef,
    tool_type: ToolType,
    pub(crate) timeout: Option<Duration>,
    /// The name of the MCP server that has the tool.
    pub(crate) server: Option<Arc<str>>,
    /// Checks every input, and is shown instead of that of the definition; `None` if the action
    /// checks its input.
    pub(crate) schema: Option<Arc<InputSchema>>,
    /// Removes fields that a model must not set, before the input is checked.
    pub(crate) clean_input: fn(Value) -> Value,
    /// The keys of this process, removed from results of actions that do not remove them.
    keys: Secrets,
    action: Arc<ToolAction>,
}

impl PackTool {
    /// A tool whose action checks its input.
    pub(crate) fn new<R>(
        def: ToolDef,
        tool_type: ToolType,
        timeout: Option<Duration>,
        action: impl Fn(ToolInvocation) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Result<Value, ToolFailure>> + Send + 'static,
    {
        Self {
            def,
            tool_type,
            timeout,
            server: None,
            schema: None,
            clean_input: identity,
            keys: Secrets::default(),
            action: Arc::new(move |call| Box::pin(action(call))),
        }
    }

    /// The tool of `function`, which checks its input. A pack may give it other texts with
    /// [`Self::renamed`].
    pub(crate) fn builtin<R>(
        function: BuiltinFunction,
        name: &str,
        description: &str,
        input_schema: Value,
        run: impl Fn(ToolInvocation) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Result<Value, ToolFailure>> + Send + 'static,
    {
        let kind = ToolKind::Direct(function);
        let mut def = plain_def(name.to_owned(), description.to_owned(), kind);
        def.input_schema = input_schema;
        Self::new(def, ToolType::Function, None, run)
    }

    /// Checks every input against the schema of the definition. The error says what is wrong with
    /// the schema.
    pub(crate) fn checked(self) -> Result<Self, String> {
        let schema = Some(Arc::new(InputSchema::new(&self.def.input_schema)?));
        Ok(Self { schema, ..self })
    }

    /// Removes `keys` from every result.
    pub(crate) fn hiding(self, keys: Secrets) -> Self {
        Self { keys, ..self }
    }

    /// The same action as `def` defines it; texts and a timeout that `def` leaves out stay.
    pub(crate) fn renamed(self, def: &ToolDef) -> Self {
        let mut def = def.clone();
        if def.description.is_empty() {
            def.description = self.def.description;
        }
        if def.input_schema.is_null() {
            def.input_schema = self.def.input_schema;
        }
        let timeout = def.timeout_ms.map(Duration::from_millis);
        let timeout = timeout.or(self.timeout);
        Self {
            def,
            timeout,
            ..self
        }
    }
}

/// The definition of a tool that no pack defines: a name, a description and no flags.
pub(crate) fn plain_def(name: String, description: String, kind: ToolKind) -> ToolDef {
    ToolDef {
        name,
        description,
        kind,
        input_schema: Value::Null,
        status: None,
        timeout_ms: None,
        remember: false,
        approval: false,
        progress_status: None,
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
        let checked = self.schema.as_ref().map(|schema| &schema.text);
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

    fn has_effects(&self) -> bool {
        match &self.def.kind {
            // A person has decided on this call: the decision and the call are on record together.
            _ if self.def.approval => true,
            ToolKind::Ccs { .. } | ToolKind::Render { .. } | ToolKind::Direct(_) => false,
            // A GET may have effects too.
            ToolKind::Http(_)
            | ToolKind::Process(_)
            | ToolKind::Mcp { .. }
            | ToolKind::Delegate { .. } => true,
        }
    }

    fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    fn check_input(&self, input: &Value) -> Option<Result<(), ToolFailure>> {
        self.schema.as_ref().map(|schema| schema.check(input))
    }

    fn run(&self, mut call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let (schema, action) = (self.schema.clone(), Arc::clone(&self.action));
        let (clean_input, keys) = (self.clean_input, self.keys.clone());
        Box::pin(async move {
            call.input = clean_input(call.input);
            if let Some(schema) = schema {
                schema.check(&call.input)?;
            }
            let result = action(call).await;
            result
                .map(|value| keys.hide_in(value))
                .map_err(|failure| ToolFailure {
                    message: keys.hide(failure.message),
                    ..failure
                })
        })
    }
}

#[cfg(test)]
mod tests;
