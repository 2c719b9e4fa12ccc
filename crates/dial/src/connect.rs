//! How long a connection may take to come about, said anew by every request. The client itself
//! knows one time for all of them, so the time travels with the task that asks.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tower::{Layer, Service};

type BoxError = Box<dyn Error + Send + Sync>;

tokio::task_local! {
    static TIME: Duration;
}

/// There was no connection in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection came about in time")]
pub(crate) struct Late;

/// Runs `future`; a connection that it opens must be there within `time`.
pub(crate) fn within<F: Future>(time: Duration, future: F) -> impl Future<Output = F::Output> {
    TIME.scope(time, future)
}

/// Gives connections the time that the request has for them.
#[derive(Clone)]
pub(crate) struct Timely;

/// A connector that gives up in time.
#[derive(Clone)]
pub(crate) struct Connector<S>(S);

impl<S> Layer<S> for Timely {
    type Service = Connector<S>;

    fn layer(&self, inner: S) -> Connector<S> {
        Connector(inner)
    }
}

impl<S, R> Service<R> for Connector<S>
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
        // A request without a time of its own is ended as a whole by whoever waits for it.
        let Ok(time) = TIME.try_with(|&time| time) else {
            return Box::pin(connecting);
        };
        Box::pin(async move {
            match tokio::time::timeout(time, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(Late.into()),
            }
        })
    }
}
