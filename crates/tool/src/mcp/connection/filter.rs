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

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions as _, GetMeta as _, ProgressToken, ServerJsonRpcMessage,
    ServerNotification,
};
use rmcp::transport::Transport;
use tokio::sync::watch;
use turnwire_event::metric;

use super::health::ConnectionHealth;

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

/// A transport of any kind behind the filter.
pub(super) struct FilteredTransport<T> {
    inner: T,
    server: Arc<str>,
    health: Arc<ConnectionHealth>,
    /// The progress senders of the open calls.
    routes: HashMap<ProgressToken, Weak<watch::Sender<Option<ProgressStep>>>>,
}

impl<T> FilteredTransport<T> {
    pub(super) fn new(inner: T, server: &Arc<str>, health: &Arc<ConnectionHealth>) -> Self {
        Self {
            inner,
            server: Arc::clone(server),
            health: Arc::clone(health),
            routes: HashMap::new(),
        }
    }

    /// Whether rmcp gets the message.
    fn passes(&self, message: &ServerJsonRpcMessage) -> bool {
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
                tracing::warn!(
                    server = %self.server,
                    "MCP server reports changed tools; reload the pack to list them again"
                );
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
