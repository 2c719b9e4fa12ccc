//! A transport with an eye on it. Requests tell where their progress is to go; what the server
//! sends without being asked is counted, and only what somebody needs goes further.
//!
//! ```text
//! server ──▶ measured bytes ──▶ transport ──▶ Link ──▶ answers, requests ──▶ rmcp
//!                                              ╰────▶ progress ──▶ the call it is of
//! ```
//! Progress is read here and not by rmcp's own handler, which runs each notification in a task of
//! its own: the last step would not always be the last.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions as _, GetMeta as _, ProgressToken, ServerJsonRpcMessage,
    ServerNotification,
};
use rmcp::transport::Transport;
use tokio::sync::watch;
use turnwire_event::metric;

use crate::mcp::meter::Meter;

/// How far a call is, as the server counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
}

/// Where the progress of a call goes: the newest step counts. The call holds the other end, and
/// what comes after it is gone goes nowhere.
pub(crate) type Slot = Arc<watch::Sender<Option<Step>>>;

/// Entries that may lie about before those whose call is gone are swept out.
const SWEEP_AT: usize = 64;

/// The slots of the calls that are under way.
#[derive(Default)]
struct Slots(Mutex<HashMap<ProgressToken, Weak<watch::Sender<Option<Step>>>>>);

impl Slots {
    fn put(&self, token: ProgressToken, slot: &Slot) {
        let mut slots = self.0.lock();
        if slots.len() >= SWEEP_AT {
            slots.retain(|_, slot| slot.strong_count() > 0);
        }
        slots.insert(token, Arc::downgrade(slot));
    }

    fn step(&self, token: &ProgressToken, step: Step) {
        let mut slots = self.0.lock();
        match slots.get(token).map(Weak::upgrade) {
            Some(Some(slot)) => {
                slot.send_replace(Some(step));
            }
            Some(None) => {
                slots.remove(token);
            }
            None => {}
        }
    }
}

/// A transport of any kind, watched.
pub(crate) struct Link<T> {
    inner: T,
    server: Arc<str>,
    meter: Arc<Meter>,
    slots: Slots,
}

impl<T> Link<T> {
    pub(crate) fn new(inner: T, server: &Arc<str>, meter: &Arc<Meter>) -> Self {
        Self {
            inner,
            server: Arc::clone(server),
            meter: Arc::clone(meter),
            slots: Slots::default(),
        }
    }

    /// Whether a message goes further.
    fn passes(&self, message: &ServerJsonRpcMessage) -> bool {
        let notification = match message {
            ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_) => return true,
            ServerJsonRpcMessage::Request(_) => None,
            ServerJsonRpcMessage::Notification(told) => Some(&told.notification),
        };
        if !self.meter.passes() {
            metrics::counter!(
                metric::MCP_NOTIFICATIONS_DROPPED_TOTAL,
                "server" => self.server.to_string()
            )
            .increment(1);
            return false;
        }
        match notification {
            None => true,
            Some(ServerNotification::ProgressNotification(told)) => {
                let step = Step {
                    progress: told.params.progress,
                    total: told.params.total,
                };
                self.slots.step(&told.params.progress_token, step);
                false
            }
            Some(ServerNotification::ToolListChangedNotification(_)) => {
                tracing::warn!(
                    server = %self.server,
                    "the MCP server says that its tools have changed; they are listed anew when the pack is read again"
                );
                true
            }
            Some(ServerNotification::CancelledNotification(_)) => true,
            // Logs and news of resources and prompts: nobody here reads them.
            Some(_) => false,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Link<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(asked) = &message {
            let slot = asked.request.extensions().get::<Slot>();
            let token = asked.request.get_meta().get_progress_token();
            if let (Some(slot), Some(token)) = (slot, token) {
                self.slots.put(token, slot);
            }
        }
        self.inner.send(message)
    }

    /// May be dropped at any time: what was received is judged without waiting.
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
