//! A stop on its way: the cancel that was sent, and how long the turn takes over it.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use turnwire_client::{Client, Error};
use turnwire_event::TurnId;
use turnwire_wire::rest::turn::TurnCancelAccepted;

/// How often a stop that takes its time is told of, and when first.
const TOLD: Duration = Duration::from_secs(1);

/// How long after one that did not get through the next cancel is sent, at first and at most.
const AGAIN: Duration = Duration::from_millis(250);
const AGAIN_MAX: Duration = Duration::from_secs(5);

/// A cancel that was sent, until it is answered.
pub(super) type Cancel = Option<SentCancel>;

/// A cancel on its way. Dropping it takes it back, if it has not got there.
pub(super) struct SentCancel {
    answer: JoinHandle<Result<TurnCancelAccepted, Error>>,
    /// How many did not get through before.
    pub(super) tried: u32,
}

impl SentCancel {
    /// Asks a turn to stop, after a while if it was tried before.
    pub(super) fn new(client: Client, turn: TurnId, tried: u32) -> Self {
        let wait = match tried {
            0 => Duration::ZERO,
            more => AGAIN.saturating_mul(1 << (more - 1).min(10)).min(AGAIN_MAX),
        };
        let answer = tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            client.cancel(turn, None).await
        });
        Self { answer, tried }
    }
}

impl Drop for SentCancel {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

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

/// Why a cancel did not get through, and whether it may if it is sent again.
pub(super) struct CancelNotSent {
    pub(super) why: String,
    pub(super) passing: bool,
}

/// The answer to a cancel; never, if none was asked for.
pub(super) async fn answered(cancel: &mut Cancel) -> Result<(), CancelNotSent> {
    let Some(sent) = cancel else {
        return std::future::pending().await;
    };
    match (&mut sent.answer).await {
        Ok(answer) => answer.map(drop).map_err(|error| CancelNotSent {
            why: error.to_string(),
            passing: error.is_transient(),
        }),
        Err(error) => Err(CancelNotSent {
            why: error.to_string(),
            passing: false,
        }),
    }
}
