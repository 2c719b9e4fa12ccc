//! Finds out whether a server still responds, with pings. A server that handles one request at a
//! time may be busy with another call, so a silent server is pinged again when the calls that were
//! open at that time have ended.
//!
//! ```text
//! probe ──▶ pings ── silent ──▶ wait for the open calls ──▶ pings ── silent ──▶ unresponsive
//!             ╰─ a response, or any byte ──▶ responsive ◀──────╯
//! ```

use std::time::Duration;

use rmcp::model::{ClientRequest, PingRequest, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use tokio::time::timeout;

use super::error::SendFailure;
use super::health::ConnectionHealth;
use super::request::PendingRequest;

/// A healthy server answers a ping at once, unless it handles one request at a time.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// Probes the server whenever a call asks for it, `pings` times at most, and returns when it is
/// unresponsive.
pub(crate) async fn until_unresponsive(
    peer: Peer<RoleClient>,
    pings: usize,
    health: &ConnectionHealth,
) {
    loop {
        health.probe.notified().await;
        if !is_responsive(|| ping(&peer), pings, health).await {
            return;
        }
    }
}

async fn is_responsive<P: Future<Output = Option<bool>>>(
    mut ping: impl FnMut() -> P,
    pings: usize,
    health: &ConnectionHealth,
) -> bool {
    let received = health.received_total();
    let has_sent = || health.received_total() > received;
    let mut round = async || {
        for _ in 0..pings {
            match ping().await {
                None if has_sent() => return Some(true),
                None => {}
                answered => return answered,
            }
        }
        None
    };
    if let Some(is_responsive) = round().await {
        return is_responsive;
    }
    // Only the calls of now count: later ones do not keep a dead server for ever.
    let Some(latest) = health.latest_deadline() else {
        return false;
    };
    health.calls_over(latest).await;
    has_sent() || round().await.unwrap_or(false)
}

/// Whether the server can be reached, as the response to a ping shows; `None` without a response
/// in time.
async fn ping(peer: &Peer<RoleClient>) -> Option<bool> {
    match timeout(PING_TIMEOUT, send_ping(peer)).await.ok()? {
        Err(ServiceError::TransportSend(error)) => {
            let failure = SendFailure::from(&error);
            Some(matches!(failure, SendFailure::BadResponse(_)))
        }
        Ok(_) | Err(_) => Some(true),
    }
}

async fn send_ping(peer: &Peer<RoleClient>) -> Result<ServerResult, ServiceError> {
    let ping = ClientRequest::PingRequest(PingRequest::default());
    let options = PeerRequestOptions::no_options();
    let handle = peer.send_request_with_option(ping, options).await?;
    // Dropped when it is late, so that it does not occupy one of the concurrent HTTP requests.
    let mut request = PendingRequest::new(handle, "the ping was not answered in time");
    let response = request.response().await;
    response.unwrap_or(Err(ServiceError::TransportClosed))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::{Instant, sleep};

    use super::*;

    async fn silent_ping() -> Option<bool> {
        sleep(PING_TIMEOUT).await;
        None
    }

    fn secs(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[tokio::test(start_paused = true)]
    async fn silent_server_without_open_calls_is_unresponsive() {
        let health = Arc::<ConnectionHealth>::default();
        let _late = health.begin_call(Instant::now());
        let start = Instant::now();
        assert!(!is_responsive(silent_ping, 2, &health).await);
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn silent_server_gets_the_time_of_its_open_call_only() {
        let health = Arc::<ConnectionHealth>::default();
        let start = Instant::now();
        let _call = health.begin_call(start + secs(120));
        let later_calls = async {
            loop {
                let first = health.begin_call(Instant::now() + secs(60));
                sleep(secs(7)).await;
                let second = health.begin_call(Instant::now() + secs(60));
                drop(first);
                sleep(secs(7)).await;
                drop(second);
            }
        };
        tokio::select! {
            is_responsive = is_responsive(silent_ping, 2, &health) => assert!(!is_responsive),
            () = later_calls => {}
        }
        assert_eq!(start.elapsed().as_secs(), 130);
    }

    #[tokio::test(start_paused = true)]
    async fn silent_server_is_pinged_again_when_its_call_is_dropped() {
        let health = Arc::<ConnectionHealth>::default();
        let start = Instant::now();
        let call = health.begin_call(start + secs(120));
        let dropped = async {
            sleep(secs(30)).await;
            drop(call);
        };
        let (is_responsive, ()) = tokio::join!(is_responsive(silent_ping, 2, &health), dropped);
        assert!(!is_responsive);
        assert_eq!(start.elapsed().as_secs(), 40);
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_answers_its_call_is_responsive() {
        let health = Arc::<ConnectionHealth>::default();
        let start = Instant::now();
        let call = health.begin_call(start + secs(120));
        let answered = async {
            sleep(secs(60)).await;
            let received = health.receive(3);
            drop(call);
            received
        };
        let (is_responsive, received) =
            tokio::join!(is_responsive(silent_ping, 2, &health), answered);
        assert_eq!((is_responsive, received), (true, Ok(())));
        assert_eq!(start.elapsed().as_secs(), 60);
    }
}
