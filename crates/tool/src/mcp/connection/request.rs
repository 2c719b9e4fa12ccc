//! A request that was sent to a server. Dropping a [`PendingRequest`] tells the server to cancel
//! the request, and over HTTP closes the request that waits for the response.

use rmcp::model::ServerResult;
use rmcp::service::{RequestHandle, RoleClient, ServiceError};

/// A request without a response so far.
pub(crate) struct PendingRequest {
    /// `None` once the response has arrived.
    handle: Option<RequestHandle<RoleClient>>,
    /// The reason that the server is told if the request is dropped.
    cancel_reason: &'static str,
}

impl PendingRequest {
    pub(crate) fn new(handle: RequestHandle<RoleClient>, cancel_reason: &'static str) -> Self {
        Self {
            handle: Some(handle),
            cancel_reason,
        }
    }

    /// Waits for the response; `None` if the connection ends before. Cancel safe.
    pub(crate) async fn response(&mut self) -> Option<Result<ServerResult, ServiceError>> {
        let response = (&mut self.handle.as_mut()?.rx).await;
        self.handle = None;
        response.ok()
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else {
            return;
        };
        let reason = self.cancel_reason.to_owned();
        // Without a runtime the process is shutting down, and the connection with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = handle.cancel(Some(reason)).await;
            });
        }
    }
}
