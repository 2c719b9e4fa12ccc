//! Child tasks: work of a turn that does not end when its future is dropped.

use std::sync::{Arc, OnceLock};

use crate::ToolUseId;
use crate::code::{ReceiptKind, StopOutcome};

use super::{BoxFuture, EmitRefusal};

/// Work of a turn that does not end when its future is dropped: a process or a worker. The
/// turn's terminal waits for it, and the receipt lists it.
pub struct ChildTask {
    pub kind: ReceiptKind,
    /// The process or worker. The id may be set after [`ChildTaskRegistry::track`]; a task whose id is never set
    /// never started and is not on the receipt.
    pub id: ChildTaskId,
    /// The tool use that started the task.
    pub tool_use_id: ToolUseId,
    /// Resolves with the outcome when the task has ended, also if that was long before the turn's end.
    pub ended: BoxFuture<'static, StopOutcome>,
}

/// The id of a [`ChildTask`], set once: a process has no id before it starts.
#[derive(Clone, Debug, Default)]
pub struct ChildTaskId(Arc<OnceLock<String>>);

impl ChildTaskId {
    /// Sets the id; only the first call has an effect.
    pub fn name(&self, id: impl Into<String>) {
        let _ = self.0.set(id.into());
    }

    /// The id, if it was set.
    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

impl From<String> for ChildTaskId {
    fn from(id: String) -> Self {
        Self(Arc::new(OnceLock::from(id)))
    }
}

/// Marks a running task of the turn's own work until it is dropped. The turn's terminal waits for
/// it for a bounded time.
pub type TaskPermit = Box<dyn Send>;

/// Tracks the tasks of a turn, so that none outlives it.
pub trait ChildTaskRegistry: Send + Sync {
    /// Permits a task of the turn's own work to start. Call this right before the task acts, also
    /// after waiting for something: once the turn is being cancelled, nothing starts any more.
    fn enter(&self) -> Result<TaskPermit, EmitRefusal> {
        Ok(Box::new(()))
    }

    /// Tracks `task`. Call this before the task starts: once the turn is being cancelled, the call
    /// is refused, and a refused task must not start.
    fn track(&self, task: ChildTask) -> Result<(), EmitRefusal>;
}
