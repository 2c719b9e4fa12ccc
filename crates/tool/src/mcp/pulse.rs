//! Whether a server that somebody doubts is there. It is asked with pings; one that says nothing
//! may be at a call of ours, and is asked again when that has had its time.
//!
//! ```text
//! doubt ──▶ pings ── silent ──▶ wait for the calls that are open ──▶ pings ── silent ──▶ not there
//!             ╰─ an answer, or any byte ──▶ there ◀──╯
//! ```

use std::time::Duration;

use rmcp::model::{ClientRequest, PingRequest, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use tokio::time::timeout;

use crate::mcp::asked::Asked;
use crate::mcp::error::{Unsent, unsent};
use crate::mcp::meter::Meter;
use crate::mcp::open::Open;

/// For an answer to a ping: a server that is well gives it at once, unless it does one thing after
/// the other.
const PING_MAX: Duration = Duration::from_secs(5);

/// Whether a server says anything at all: asked with `ping`, `times` at once. While a call is open
/// that has time it is not given up, but only for the calls that are open when it is first silent:
/// others that come meanwhile do not hold a dead one up for ever.
pub(crate) async fn lives<P: Future<Output = Option<bool>>>(
    mut ping: impl FnMut() -> P,
    times: usize,
    meter: &Meter,
    open: &Open,
) -> bool {
    let before = meter.heard();
    let mut most = None;
    loop {
        for _ in 0..times {
            match ping().await {
                Some(there) => return there,
                None if meter.heard() > before => return true,
                None => {}
            }
        }
        let Some(until) = open.until() else {
            return false;
        };
        let most = *most.get_or_insert(until);
        if most <= tokio::time::Instant::now() {
            return false;
        }
        open.over(most).await;
        if meter.heard() > before {
            return true;
        }
    }
}

/// Whether the answer to a ping is that of a server that is there; none if there is none in time.
pub(crate) async fn ping(peer: Peer<RoleClient>) -> Option<bool> {
    match asked(&peer).await? {
        Err(ServiceError::TransportSend(why)) => Some(matches!(unsent(&why), Unsent::Bad(_))),
        Ok(_) | Err(_) => Some(true),
    }
}

async fn asked(peer: &Peer<RoleClient>) -> Option<Result<ServerResult, ServiceError>> {
    let ping = ClientRequest::PingRequest(PingRequest::default());
    let asked = async {
        let options = PeerRequestOptions::with_timeout(PING_MAX);
        let handle = peer.send_request_with_option(ping, options).await?;
        // Dropped when it is late, so that it does not wait on where a call could.
        let mut asked = Asked::new(handle, "it was not answered in time");
        let answer = asked.answer().await;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    };
    timeout(PING_MAX, asked).await.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::mcp::meter::{Ends, Gauge};

    /// Nobody answers.
    async fn silence() -> Option<bool> {
        sleep(PING_MAX).await;
        None
    }

    fn secs(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_without_a_call_is_not_there() {
        let (meter, open) = (Meter::new(), Arc::new(Open::default()));
        let late = open.begin(Instant::now());
        let began = Instant::now();
        assert!(!lives(silence, 2, &meter, &open).await);
        assert_eq!(began.elapsed().as_secs(), 10);
        drop(late);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_with_a_call_has_the_time_of_that_call_and_no_more() {
        let (meter, open) = (Meter::new(), Arc::new(Open::default()));
        let began = Instant::now();
        let _call = open.begin(began + secs(120));
        // Others go on calling it.
        let crowd = async {
            loop {
                let one = open.begin(Instant::now() + secs(60));
                sleep(secs(7)).await;
                let other = open.begin(Instant::now() + secs(60));
                drop(one);
                sleep(secs(7)).await;
                drop(other);
            }
        };
        tokio::select! {
            lives = lives(silence, 2, &meter, &open) => assert!(!lives),
            () = crowd => {}
        }
        assert_eq!(began.elapsed().as_secs(), 130);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_whose_call_is_dropped_is_asked_again_at_once() {
        let (meter, open) = (Meter::new(), Arc::new(Open::default()));
        let began = Instant::now();
        let call = open.begin(began + secs(120));
        let dropped = async {
            sleep(secs(30)).await;
            drop(call);
        };
        let (lives, ()) = tokio::join!(lives(silence, 2, &meter, &open), dropped);
        assert!(!lives);
        assert_eq!(began.elapsed().as_secs(), 40);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_answers_its_call_is_there() {
        let (meter, open) = (Meter::new(), Arc::new(Open::default()));
        let began = Instant::now();
        let call = open.begin(began + secs(120));
        let answered = async {
            sleep(secs(60)).await;
            let heard = Gauge::new(Ends::Line).take(b"{}\n", &meter);
            drop(call);
            heard
        };
        let (lives, heard) = tokio::join!(lives(silence, 2, &meter, &open), answered);
        assert_eq!((lives, heard), (true, Ok(())));
        assert_eq!(began.elapsed().as_secs(), 60);
    }
}
