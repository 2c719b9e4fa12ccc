//! Reports the progress of a call as events of the turn: two steps and one status in a second, and
//! always the last step, however often the server reports.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use turnwire_event::body::mcp::{McpCallProgressed, McpServerRef as ServerBody};
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::{Actor, Body};
use turnwire_pack::ToolDef;

use crate::mcp::connection::ProgressStep;
use crate::tool::ToolInvocation;

const STEP_INTERVAL: Duration = Duration::from_millis(500);
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Reports one call to its turn.
pub(crate) struct ProgressReporter {
    server: Arc<str>,
    tool: String,
    /// The status that accompanies the steps.
    status: Option<String>,
    invocation: ToolInvocation,
    /// The newest step, if it is not reported yet.
    pending: Option<ProgressStep>,
    step_at: Option<Instant>,
    status_at: Option<Instant>,
}

impl ProgressReporter {
    /// Reports a call of the tool that `def` defines to the turn of `invocation`.
    pub(crate) fn new(server: &Arc<str>, def: &ToolDef, invocation: ToolInvocation) -> Self {
        Self {
            server: Arc::clone(server),
            tool: def.name.clone(),
            status: def.progress_status.clone(),
            invocation,
            pending: None,
            step_at: None,
            status_at: None,
        }
    }

    /// Reports that the turn uses the server.
    pub(crate) async fn session_started(&self) {
        let server = self.server.to_string();
        let body = Body::McpSessionStarted(ServerBody { server });
        self.emit(Actor::tool(&self.tool), body).await;
    }

    /// Reports `step` now, or keeps it until [`Self::due`].
    pub(crate) async fn step(&mut self, step: ProgressStep) {
        self.pending = Some(step);
        if self.due().is_some_and(|due| due <= Instant::now()) {
            self.flush().await;
        }
    }

    /// When the pending step is to be reported.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.pending?;
        let due = self.step_at.map(|at| at + STEP_INTERVAL);
        Some(due.unwrap_or_else(Instant::now))
    }

    /// Reports the pending step.
    pub(crate) async fn flush(&mut self) {
        let Some(step) = self.pending.take() else {
            return;
        };
        let now = Instant::now();
        self.step_at = Some(now);
        let body = Body::McpSessionProgressed(McpCallProgressed {
            server: self.server.to_string(),
            progress: step.progress,
            total: step.total,
        });
        self.emit(Actor::tool(&self.tool), body).await;
        let is_due = self.status_at.is_none_or(|at| now >= at + STATUS_INTERVAL);
        if let (Some(status), true) = (&self.status, is_due) {
            self.status_at = Some(now);
            // The status is the agent's, not the tool's: the registry says who may emit it. The
            // interceptor writes its text.
            let actor = self.invocation.context.actor();
            let body = Body::StatusEmitted(StatusEmitted {
                event_id: status.clone(),
                message: String::new(),
                invocation_id: None,
            });
            self.emit(actor, body).await;
        }
    }

    /// A turn that refuses the event is over, and this call with it.
    async fn emit(&self, actor: Actor, body: Body) {
        let _ = self.invocation.emit(actor, body).await;
    }
}
