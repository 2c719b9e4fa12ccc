//! A request that a server has. Dropping it before it is answered tells the server to stop, and
//! over HTTP ends what waits for the answer.

use rmcp::model::ServerResult;
use rmcp::service::{RequestHandle, RoleClient, ServiceError};

/// A request that has been sent.
pub(crate) struct Asked {
    /// None once it is answered.
    handle: Option<RequestHandle<RoleClient>>,
    /// Why it is dropped, for the server.
    why: &'static str,
}

impl Asked {
    pub(crate) fn new(handle: RequestHandle<RoleClient>, why: &'static str) -> Self {
        let handle = Some(handle);
        Self { handle, why }
    }

    /// The answer; none if the connection is over. May be dropped and asked for again.
    pub(crate) async fn answer(&mut self) -> Option<Result<ServerResult, ServiceError>> {
        let answer = (&mut self.handle.as_mut()?.rx).await;
        self.handle = None;
        answer.ok()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else {
            return;
        };
        let why = self.why.to_owned();
        // Outside a runtime the server is going down, and the connection with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = handle.cancel(Some(why)).await;
            });
        }
    }
}
