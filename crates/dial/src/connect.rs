//! A connect timeout per request. The HTTP client supports one timeout for all requests only, so
//! the timeout is passed to the connector in a task-local value.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tower::Service;

type BoxError = Box<dyn Error + Send + Sync>;

tokio::task_local! {
    static CONNECT_TIMEOUT: Duration;
}

/// The connection was not established in time.
#[derive(Debug, thiserror::Error)]
#[error("the connection was not established in time")]
pub(crate) struct ConnectTimedOut;

/// Runs `future`; every connection that it opens must be established within `timeout`.
pub(crate) fn with_connect_timeout<F: Future>(
    timeout: Duration,
    future: F,
) -> impl Future<Output = F::Output> {
    CONNECT_TIMEOUT.scope(timeout, future)
}

/// A connector that fails with [`ConnectTimedOut`] when the connect timeout of the current request
/// has passed.
#[derive(Clone)]
pub(crate) struct ConnectTimeoutService<S>(pub(crate) S);

impl<S, R> Service<R> for ConnectTimeoutService<S>
where
    S: Service<R, Error = BoxError>,
    S::Response: 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let connecting = self.0.call(request);
        // Without a connect timeout, only the timeout of the whole request applies.
        let Ok(timeout) = CONNECT_TIMEOUT.try_with(|&timeout| timeout) else {
            return Box::pin(connecting);
        };
        Box::pin(async move {
            let connected = tokio::time::timeout(timeout, connecting).await;
            connected.unwrap_or_else(|_| Err(ConnectTimedOut.into()))
        })
    }
}
