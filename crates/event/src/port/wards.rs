//! What does not end with a turn's future, and who has charge of it.

use std::sync::{Arc, OnceLock};

use crate::ToolUseId;
use crate::code::{ReceiptKind, StopOutcome};

use super::{BoxFuture, Refusal};

/// Something of a turn that does not end when its future is dropped: a process, a worker. The
/// turn's terminal waits for it, and its receipt names it.
pub struct Ward {
    /// What it is.
    pub kind: ReceiptKind,
    /// Which one. It may be named after it was taken; one that never is never began to be, and no
    /// receipt knows of it.
    pub id: WardId,
    /// The tool use it works for.
    pub tool_use_id: ToolUseId,
    /// Resolves when it is gone, and says how; also when it ended long before the turn.
    pub ended: BoxFuture<'static, StopOutcome>,
}

/// The name of a ward, given once: a process has none before it begins to be.
#[derive(Clone, Debug, Default)]
pub struct WardId(Arc<OnceLock<String>>);

impl WardId {
    /// Gives the name; the first one counts.
    pub fn name(&self, id: impl Into<String>) {
        let _ = self.0.set(id.into());
    }

    /// The name, if it was given.
    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

impl From<String> for WardId {
    fn from(id: String) -> Self {
        let ward = Self::default();
        ward.name(id);
        ward
    }
}

/// A part of a turn's own work, held while it is there. The turn's terminal waits for it a little.
pub type Part = Box<dyn Send>;

/// Who sees to it that nothing of a turn outlives it.
pub trait Wards: Send + Sync {
    /// Lets a part of the turn's own work begin that has a task of its own. To be asked right
    /// before it acts, also where it had to wait for something: once the turn is to stop, nothing
    /// begins any more.
    fn enter(&self) -> Result<Part, Refusal> {
        Ok(Box::new(()))
    }

    /// Takes charge of `ward`. To be asked before it begins to be: once the turn is to stop,
    /// nothing is taken any more, and what is not taken must not begin.
    fn take(&self, ward: Ward) -> Result<(), Refusal>;
}
