//! A transport that filters the messages of a server: responses pass, progress goes to its call,
//! and other notifications and requests are rate limited.
//!
//! ```text
//! server ──▶ bounded bytes ──▶ transport ──▶ FilteredTransport ──▶ responses, requests ──▶ rmcp
//!                                                  ╰────▶ progress ──▶ the call
//! ```
//! rmcp's own handler runs each notification in a separate task, which may reorder progress: the
//! last step would not always arrive last.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions as _, GetMeta as _, ProgressToken, ServerJsonRpcMessage,
    ServerNotification,
};
use rmcp::transport::Transport;
use tokio::sync::watch;
use tokio::time::Instant;
use turnwire_event::metric;

use super::health::ConnectionHealth;
use super::intake::{MessageIntake, ResultSender};

/// The progress of a call, in the units of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProgressStep {
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
}

/// Where the progress of a call goes. The call puts it into the extensions of its request and holds
/// the receiver, which sees the newest step.
pub(crate) type ProgressSender = Arc<watch::Sender<Option<ProgressStep>>>;

/// Entries of calls that are over are removed when there are this many.
const ROUTES_CLEANUP_AT: usize = 64;

/// The time between two log lines about the same notification of a server.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Counts what happens between two log lines.
#[derive(Debug, Default)]
struct LogInterval {
    logged: Option<Instant>,
    count: u64,
}

impl LogInterval {
    /// Counts one more. Returns the count since the last line if it is time for the next.
    fn count(&mut self) -> Option<u64> {
        self.count += 1;
        let is_due = |logged: Instant| logged.elapsed() >= LOG_INTERVAL;
        if !self.logged.is_none_or(is_due) {
            return None;
        }
        self.logged = Some(Instant::now());
        Some(std::mem::take(&mut self.count))
    }
}

/// A transport of any kind behind the filter.
pub(super) struct FilteredTransport<T> {
    inner: T,
    server: Arc<str>,
    health: Arc<ConnectionHealth>,
    intake: Arc<MessageIntake>,
    changed_tools: LogInterval,
    /// The progress senders of the open calls.
    routes: HashMap<ProgressToken, Weak<watch::Sender<Option<ProgressStep>>>>,
}

impl<T> FilteredTransport<T> {
    pub(super) fn new(
        inner: T,
        server: &Arc<str>,
        health: &Arc<ConnectionHealth>,
        intake: &Arc<MessageIntake>,
    ) -> Self {
        Self {
            inner,
            server: Arc::clone(server),
            health: Arc::clone(health),
            intake: Arc::clone(intake),
            changed_tools: LogInterval::default(),
            routes: HashMap::new(),
        }
    }

    /// Whether rmcp gets the message.
    fn passes(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let notification = match message {
            ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_) => return true,
            ServerJsonRpcMessage::Request(_) => None,
            ServerJsonRpcMessage::Notification(message) => Some(&message.notification),
        };
        if !self.health.allow_notification() {
            metrics::counter!(
                metric::MCP_NOTIFICATIONS_DROPPED_TOTAL,
                "server" => self.server.to_string()
            )
            .increment(1);
            return false;
        }
        match notification {
            None => true,
            Some(ServerNotification::ProgressNotification(notification)) => {
                let params = &notification.params;
                let step = ProgressStep {
                    progress: params.progress,
                    total: params.total,
                };
                let sender = self.routes.get(&params.progress_token);
                if let Some(sender) = sender.and_then(Weak::upgrade) {
                    sender.send_replace(Some(step));
                }
                false
            }
            Some(ServerNotification::ToolListChangedNotification(_)) => {
                if let Some(notifications) = self.changed_tools.count() {
                    tracing::warn!(
                        server = %self.server, notifications,
                        "MCP server reports changed tools; reload the pack to list them again"
                    );
                }
                true
            }
            Some(ServerNotification::CancelledNotification(_)) => true,
            // Logs and changes of resources and prompts have no reader here.
            Some(_) => false,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for FilteredTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(message) = &message {
            if let Some(reader) = message.request.extensions().get::<ResultSender>() {
                self.intake.expect(&message.id, reader);
            }
            let sender = message.request.extensions().get::<ProgressSender>();
            let token = message.request.get_meta().get_progress_token();
            if let (Some(sender), Some(token)) = (sender, token) {
                if self.routes.len() >= ROUTES_CLEANUP_AT {
                    self.routes.retain(|_, sender| sender.strong_count() > 0);
                }
                self.routes.insert(token, Arc::downgrade(sender));
            }
        }
        self.inner.send(message)
    }

    /// Cancel safe: the filter does not wait.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.inner.receive().await?;
            if self.passes(&message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn flood_is_one_log_line_an_interval_with_a_count() {
        let mut interval = LogInterval::default();
        let mut lines = |n: u64| (0..n).filter_map(|_| interval.count()).collect::<Vec<_>>();
        assert_eq!(lines(1_000), [1]);
        tokio::time::advance(LOG_INTERVAL / 2).await;
        assert_eq!(lines(1_000), [0; 0]);
        tokio::time::advance(LOG_INTERVAL / 2).await;
        assert_eq!(lines(2), [2_000]);
    }
}
