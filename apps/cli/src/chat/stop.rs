//! A stop on its way: the cancel that was sent, and how long the turn takes over it.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use turnwire_client::Error;
use turnwire_wire::rest::turn::CancelAccepted;

/// How often a stop that takes its time is told of, and when first.
const TOLD: Duration = Duration::from_secs(1);

/// A cancel that was sent, until it is answered.
pub(super) type Cancel = Option<JoinHandle<Result<CancelAccepted, Error>>>;

/// Since when the turn that runs is stopping, and after how many seconds that was told.
pub(super) type Slow = Option<(Instant, u32)>;

/// When the next word of a slow stop is due, in seconds since it was asked for; never, if nothing
/// stops.
pub(super) async fn slowly(slow: Slow) -> u32 {
    let Some((since, told)) = slow else {
        return std::future::pending().await;
    };
    let next = told + 1;
    tokio::time::sleep_until(since + TOLD * next).await;
    next
}

/// The answer to a cancel; never, if none was asked for.
pub(super) async fn answered(cancel: &mut Cancel) -> Result<(), String> {
    match cancel {
        None => std::future::pending().await,
        Some(cancel) => match cancel.await {
            Ok(answer) => answer.map(drop).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        },
    }
}
