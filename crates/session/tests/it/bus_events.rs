//! The bound of `bus.*` events in the log of a session.

use std::time::Duration;

use turnwire_event::{Body, SessionId};
use turnwire_session::{Options, SessionService, WatchGuard};

use crate::stage::*;

/// Longer than the time in which notices of one kind become one event.
const WINDOW: Duration = Duration::from_millis(1_100);

/// A client comes and goes, twice.
async fn watch_twice(service: &SessionService, id: SessionId) {
    for _ in 0..2 {
        let live = service.live_sessions().open(&owner("local"), id).await;
        drop(WatchGuard::new(&live.expect("a session")));
        tokio::time::sleep(WINDOW).await;
    }
}

async fn bus_events(service: &SessionService, id: SessionId) -> Vec<Body> {
    let log = read_log(service, id).await.into_iter();
    let bodies = log.map(|event| event.body);
    let is_bus = |body: &Body| body.kind().name().starts_with("bus.");
    bodies.filter(is_bus).collect()
}

// S3-045
#[tokio::test]
async fn events_of_watchers_are_bounded_across_restarts() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = || Options {
        bus_events_max: 3,
        ..Options::default()
    };
    let idle = || producer_fn(|_| async { OK });
    let service = start_service(dir.path(), options(), idle()).await;
    let id = new_session(&service).await;
    watch_twice(&service, id).await;
    for _ in 0..6_000 {
        if bus_events(&service, id).await.len() >= 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let events = bus_events(&service, id).await;
    let names: Vec<_> = events.iter().map(|body| body.kind().name()).collect();
    assert_eq!(
        names,
        [
            "bus.subscriber_registered",
            "bus.subscriber_unregistered",
            "bus.handler_warning"
        ]
    );
    let Body::BusHandlerWarning(warning) = &events[2] else {
        panic!("{events:?}");
    };
    assert_eq!(warning.reason, "bus_events_limit");
    watch_twice(&service, id).await;
    let image = copy_store(dir.path());
    let after = start_service(image.path(), options(), idle()).await;
    watch_twice(&after, id).await;
    assert_eq!(bus_events(&after, id).await, events);
}
