//! A built-in tool under the name and with the texts of a pack.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnwire_pack::ToolDef;

use crate::pack_tool::{PackTool, ToolAction};
use crate::tool::{Tool, ToolFailure, ToolInvocation};

/// Runs a built-in tool.
pub(crate) struct RenamedTool(Arc<dyn Tool>);

impl RenamedTool {
    /// The tool `inner` as `def` defines it; texts that `def` leaves out are those of `inner`.
    pub(crate) fn build(def: &ToolDef, inner: Arc<dyn Tool>) -> PackTool {
        let mut def = def.clone();
        if def.description.is_empty() {
            inner.description().clone_into(&mut def.description);
        }
        if def.input_schema.is_null() {
            def.input_schema = inner.input_schema();
        }
        let timeout = def.timeout_ms.map(Duration::from_millis);
        let timeout = timeout.or_else(|| inner.timeout());
        PackTool::new(def, inner.tool_type(), timeout, Self(inner))
    }
}

impl ToolAction for RenamedTool {
    async fn run(&self, call: ToolInvocation) -> Result<Value, ToolFailure> {
        self.0.run(call).await
    }
}
