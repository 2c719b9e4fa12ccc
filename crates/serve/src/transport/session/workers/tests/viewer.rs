//! Viewers that are served as a connection is, without a socket, and what a client keeps of it.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::task::AtomicWaker;
use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{Body, Event, EventFilter, FilterSpec, Position, SessionId};
use turnwire_session::{LiveSession, ReplayError};
use turnwire_wire::session::{SinceCursor, SubscribeError};

use super::super::super::super::carrier::cursor::{Fill, SessionCursor};
use super::super::super::super::carrier::pending::{EventCount, PendingWrites};
use super::super::super::super::carrier::websocket::header::frame_end;
use super::super::super::failure::SubscribeFailure;
use super::super::super::subscription::Subscription;
use super::super::{START, WorkerStreams};
use super::stage::Stage;

impl Stage {
    /// A viewer of `live` that stands at `since`.
    pub(super) async fn view(
        &self,
        live: &Arc<LiveSession>,
        spec: &FilterSpec,
        since: Option<SinceCursor>,
    ) -> Result<Viewer, SubscribeError> {
        let filter = EventFilter::resolve(spec).expect("a filter");
        let max = self.streams.settings.replay_max;
        let cursor = match &since {
            None => live
                .ring
                .with_state(|_, tail, index| SessionCursor::in_ring(tail, index)),
            Some(since) => {
                let at = since.position(live.id)?;
                let catch_up = live.catch_up(at, &filter, FinishedReplay::Ends, max).await;
                SessionCursor::in_replay(at, catch_up.expect("a stored position"))
            }
        };
        let workers = if filter.include_worker_sessions {
            let named = since.map_or_else(|| Ok(Default::default()), |s| s.workers(live.id))?;
            let (streams, waker) = (self.streams.clone(), Arc::new(AtomicWaker::new()));
            let from = (cursor.at, named);
            let workers = WorkerStreams::open(streams, waker, "ws-1".into(), (live, &filter), from);
            match workers.await {
                Ok(workers) => Some(workers),
                Err(SubscribeFailure::Refused(error)) => return Err(error),
                Err(SubscribeFailure::Session(error)) => panic!("{error}"),
            }
        } else {
            None
        };
        Ok(Viewer {
            live: live.clone(),
            subscription: Subscription {
                filter,
                cursor,
                workers,
                watcher: None,
                subscribed_at: None,
            },
            due: Vec::new(),
        })
    }
}

/// A connection without its socket.
pub(super) struct Viewer {
    live: Arc<LiveSession>,
    pub(super) subscription: Subscription,
    due: Vec<Event>,
}

impl Viewer {
    /// Serves it once.
    pub(super) async fn fill(&mut self) -> Result<Fill, ReplayError> {
        let mut pending = PendingWrites::new();
        let filled = self.subscription.fill(&self.live, &mut pending).await?;
        self.due.extend(read(&mut pending));
        Ok(filled)
    }

    /// Serves it for as long as it says that something is due, which is when a connection looks
    /// at it; gives back what came.
    pub(super) async fn served(&mut self) -> Vec<Event> {
        for _ in 0..10_000 {
            if !self.subscription.backlog(&self.live).has_more {
                return std::mem::take(&mut self.due);
            }
            let filled = self.fill().await.expect("a fill");
            assert_ne!(filled, Fill::Overrun);
        }
        panic!("it is never served: {:?}", self.due);
    }

    /// What came so far.
    pub(super) fn came(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.due)
    }

    /// How far it has been told, for a ping.
    pub(super) fn positions(&self) -> SinceCursor {
        let positions = self.subscription.positions(&self.live).expect("workers");
        serde_json::from_value(serde_json::to_value(positions).expect("plain")).expect("a cursor")
    }

    /// Asks for the parent alone from now on.
    pub(super) fn leaves_workers(&mut self) {
        self.subscription.workers = None;
    }

    /// The same, as a client keeps it.
    pub(super) fn stands(&self) -> HashMap<SessionId, Position> {
        let positions = self.subscription.positions(&self.live).expect("workers");
        positions.into_iter().collect()
    }

    pub(super) fn behind(&self) -> u64 {
        self.subscription.backlog(&self.live).lag
    }
}

/// The events in what is to be written.
fn read(pending: &mut PendingWrites<EventCount>) -> Vec<Event> {
    let mut bytes = Vec::new();
    while !pending.is_empty() {
        let due: Vec<u8> = pending.slices().iter().flat_map(|s| s.to_vec()).collect();
        pending.advance(due.len(), |_| {});
        bytes.extend(due);
    }
    let (mut events, mut rest) = (Vec::new(), bytes.as_slice());
    while !rest.is_empty() {
        let end = frame_end(rest, 0);
        let json = rest[..end]
            .iter()
            .position(|b| *b == b'{')
            .expect("a frame");
        let frame: serde_json::Value = serde_json::from_slice(&rest[json..end]).expect("JSON");
        let event = frame["event"].to_string();
        events.push(Event::read(event.as_bytes()).expect("an event"));
        rest = &rest[end..];
    }
    events
}

/// The last id of each session among `events`, and the start of each worker, as a client keeps
/// them; workers that ended are dropped.
pub(super) fn cursors(
    parent: SessionId,
    from: Position,
    events: &[Event],
) -> HashMap<SessionId, Position> {
    let mut at = HashMap::from([(parent, from)]);
    heed(&mut at, events);
    at
}

/// Moves a client's cursors by what it was told.
pub(super) fn heed(at: &mut HashMap<SessionId, Position>, events: &[Event]) {
    for event in events {
        at.insert(event.session_id, event.id);
        match &event.body {
            Body::DelegateStarted(start) => {
                at.entry(start.worker_session_id).or_insert(START);
            }
            Body::DelegateCompleted(end) => drop(at.remove(&end.worker_session_id)),
            Body::DelegateFailed(end) => drop(at.remove(&end.worker_session_id)),
            _ => {}
        }
    }
}

/// The cursors as a client sends them.
pub(super) fn since(at: &HashMap<SessionId, Position>) -> SinceCursor {
    let ids = at.iter().map(|(id, at)| (id.to_string(), at.to_string()));
    SinceCursor::BySession(ids.collect())
}
