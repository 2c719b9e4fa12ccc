//! A built-in function under the name and in the words of a pack.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::ToolType;
use turnwire_event::port::BoxFuture;
use turnwire_pack::ToolDef;

use crate::tool::{Call, Tool, ToolFailure};

/// What the pack does not say, the function says itself.
pub(crate) struct Named {
    def: ToolDef,
    inner: Arc<dyn Tool>,
}

impl Named {
    pub(crate) fn new(def: &ToolDef, inner: Arc<dyn Tool>) -> Self {
        Self {
            def: def.clone(),
            inner,
        }
    }
}

impl Tool for Named {
    fn name(&self) -> &str {
        &self.def.name
    }

    fn description(&self) -> &str {
        if self.def.description.is_empty() {
            self.inner.description()
        } else {
            &self.def.description
        }
    }

    fn input_schema(&self) -> Value {
        if self.def.input_schema.is_null() {
            self.inner.input_schema()
        } else {
            self.def.input_schema.clone()
        }
    }

    fn tool_type(&self) -> ToolType {
        self.inner.tool_type()
    }

    fn timeout(&self) -> Option<Duration> {
        let own = self.def.timeout_ms.map(Duration::from_millis);
        own.or_else(|| self.inner.timeout())
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

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        self.inner.run(call)
    }
}
