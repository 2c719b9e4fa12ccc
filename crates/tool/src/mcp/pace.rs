//! How often a turn tells of a server's progress: two steps and one status in a second, and always
//! the last step. A server may count as fast as it likes.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use turnwire_event::body::mcp::{Progressed, Server as Which};
use turnwire_event::body::status::Emitted;
use turnwire_event::port::{BoxFuture, Emission};
use turnwire_event::{Actor, Body};

use crate::deliver::deliver;
use crate::mcp::call::Hears;
use crate::mcp::link::Step;
use crate::tool::Call;

const STEP_EVERY: Duration = Duration::from_millis(500);
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// Tells a turn how far one call is.
pub(crate) struct Pace {
    server: Arc<str>,
    tool: String,
    status: Option<String>,
    call: Call,
    kept: Option<Step>,
    step_at: Option<Instant>,
    status_at: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(server: &Arc<str>, tool: &str, status: Option<String>, call: Call) -> Self {
        Self {
            server: Arc::clone(server),
            tool: tool.to_owned(),
            status,
            call,
            kept: None,
            step_at: None,
            status_at: None,
        }
    }

    /// Tells that the turn uses the server.
    pub(crate) async fn begun(&self) {
        let server = self.server.to_string();
        self.emit(self.actor(), Body::McpSessionStarted(Which { server }))
            .await;
    }

    fn actor(&self) -> Actor {
        Actor::tool(&self.tool)
    }

    /// A turn that takes no more events is over, and this call with it.
    async fn emit(&self, actor: Actor, body: Body) {
        let emission = Emission {
            trace: self.call.scene.trace.clone(),
            ..Emission::new(actor, body)
        };
        let _ = deliver(&*self.call.emitter, emission).await;
    }

    async fn send(&mut self, step: Step) {
        let now = Instant::now();
        self.kept = None;
        self.step_at = Some(now);
        let body = Body::McpSessionProgressed(Progressed {
            server: self.server.to_string(),
            progress: step.progress,
            total: step.total,
        });
        self.emit(self.actor(), body).await;
        let rested = self.status_at.is_none_or(|at| now >= at + STATUS_EVERY);
        if let (Some(status), true) = (&self.status, rested) {
            self.status_at = Some(now);
            // The status is the agent's, not the tool's: the registry says who may emit it. Its
            // words are written where it is let through.
            let actor = match &self.call.scene.agent {
                Some(agent) => Actor::subagent(agent),
                None => Actor::ORCHESTRATOR,
            };
            let body = Body::StatusEmitted(Emitted {
                event_id: status.clone(),
                message: String::new(),
            });
            self.emit(actor, body).await;
        }
    }
}

impl Hears for Pace {
    fn step(&mut self, step: Step) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.kept = Some(step);
            if self.due().is_none_or(|due| Instant::now() >= due) {
                self.send(step).await;
            }
        })
    }

    fn due(&self) -> Option<Instant> {
        self.kept?;
        Some(self.step_at.map_or_else(Instant::now, |at| at + STEP_EVERY))
    }

    fn tell(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(step) = self.kept {
                self.send(step).await;
            }
        })
    }
}
