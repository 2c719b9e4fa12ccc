//! The cancel request of a turn that is stopping, and the time the turn takes to stop.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use turnwire_client::{Client, Error};
use turnwire_event::TurnId;
use turnwire_wire::rest::turn::TurnCancelAccepted;

use super::retry_delay::RetryDelay;

/// The interval in which a slow stop is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// A sent cancel request. Dropping it aborts the request if it has not been sent yet.
pub(super) struct PendingCancel {
    response: JoinHandle<Result<TurnCancelAccepted, Error>>,
    /// The delay of the next attempt.
    pub(super) retry: RetryDelay,
}

impl PendingCancel {
    /// Sends a cancel request for `turn`.
    pub(super) fn new(client: Client, turn: TurnId) -> Self {
        Self::after(Duration::ZERO, client, turn, RetryDelay::from_millis(250))
    }

    /// Sends the request again, after the next delay.
    pub(super) fn again(mut self, client: Client, turn: TurnId) -> Self {
        let delay = self.retry.next();
        Self::after(delay, client, turn, self.retry)
    }

    fn after(delay: Duration, client: Client, turn: TurnId, retry: RetryDelay) -> Self {
        let response = tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            client.cancel(turn, None).await
        });
        Self { response, retry }
    }
}

impl Drop for PendingCancel {
    fn drop(&mut self) {
        self.response.abort();
    }
}

/// The start of a stop, and the seconds after which it was last reported.
pub(super) type StopClock = Option<(Instant, u32)>;

/// Waits until the next report of a slow stop is due and returns its seconds; pending without a
/// stop.
pub(super) async fn next_report(clock: StopClock) -> u32 {
    let Some((since, reported)) = clock else {
        return std::future::pending().await;
    };
    let next = reported + 1;
    tokio::time::sleep_until(since + REPORT_INTERVAL * next).await;
    next
}

/// The response to a cancel request; pending without a request.
pub(super) async fn response(cancel: &mut Option<PendingCancel>) -> Result<(), Error> {
    let Some(sent) = cancel else {
        return std::future::pending().await;
    };
    match (&mut sent.response).await {
        Ok(response) => response.map(drop),
        Err(panic) => Err(Error::InvalidResponse(panic.to_string())),
    }
}
