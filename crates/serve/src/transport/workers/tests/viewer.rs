//! Viewers that are served as a connection is, without a socket, and what a client keeps of it.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::task::AtomicWaker;
use turnwire_event::fold::replay::Missed;
use turnwire_event::{Body, Event, Filter, FilterSpec, Position, SessionId};
use turnwire_session::{LiveSession, ReplayError};
use turnwire_wire::session::{Since, SubscribeError};

use super::super::super::frame::end_of_frame_at;
use super::super::super::outbound::Outbound;
use super::super::super::place::{Filled, Place};
use super::super::super::subscription::Subscription;
use super::super::{NoWorkers, START, Workers};
use super::stage::Stage;

impl Stage {
    /// A viewer of `live` that stands at `since`.
    pub(super) async fn view(
        &self,
        live: &Arc<LiveSession>,
        spec: &FilterSpec,
        since: Option<Since>,
    ) -> Result<Viewer, SubscribeError> {
        let filter = Filter::resolve(spec).expect("a filter");
        let max = self.streams.options.replay_max;
        let place = match &since {
            None => live.ring.look(|_, tail, cursor| Place::new(tail, cursor)),
            Some(since) => {
                let at = since.position(live.id)?;
                let catch_up = live.catch_up(at, &filter, Missed::Ends, max).await;
                Place::before(at, catch_up.expect("a place that is kept"))
            }
        };
        let workers = if filter.include_worker_sessions {
            let named = since.map_or_else(|| Ok(Default::default()), |s| s.workers(live.id))?;
            let (streams, waker) = (self.streams.clone(), Arc::new(AtomicWaker::new()));
            let whence = (place.at, named);
            let workers = Workers::of(streams, waker, "ws-1".into(), (live, &filter), whence);
            match workers.await {
                Ok(workers) => Some(workers),
                Err(NoWorkers::Told(error)) => return Err(error),
                Err(NoWorkers::Session(error)) => panic!("{error}"),
            }
        } else {
            None
        };
        Ok(Viewer {
            live: live.clone(),
            subscription: Subscription::new(filter, place, workers),
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
    pub(super) async fn fill(&mut self) -> Result<Filled, ReplayError> {
        let mut out = Outbound::default();
        let filled = self.subscription.fill(&self.live, &mut out).await?;
        self.due.extend(read(&mut out));
        Ok(filled)
    }

    /// Serves it for as long as it says that something is due, which is when a connection looks
    /// at it; gives back what came.
    pub(super) async fn served(&mut self) -> Vec<Event> {
        for _ in 0..10_000 {
            if !self.subscription.is_behind(&self.live) {
                return std::mem::take(&mut self.due);
            }
            let filled = self.fill().await.expect("a fill");
            assert_ne!(filled, Filled::Behind);
        }
        panic!("it is never served: {:?}", self.due);
    }

    /// What came so far.
    pub(super) fn came(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.due)
    }

    /// How far it has been told, for a ping.
    pub(super) fn positions(&self) -> Since {
        let positions = self.subscription.positions(&self.live).expect("workers");
        serde_json::from_value(serde_json::to_value(positions).expect("plain")).expect("a cursor")
    }

    /// Asks for the parent alone from now on.
    pub(super) async fn leaves_workers(&mut self) {
        let left = self.subscription.leave_workers(&self.live).await;
        left.expect("read again");
    }

    /// The same, as a client keeps it.
    pub(super) fn stands(&self) -> HashMap<SessionId, Position> {
        let positions = self.subscription.positions(&self.live).expect("workers");
        positions.into_iter().collect()
    }

    pub(super) fn behind(&self) -> u64 {
        self.subscription.behind(&self.live)
    }
}

/// The events in what is to be written.
fn read(out: &mut Outbound) -> Vec<Event> {
    let mut bytes = Vec::new();
    while !out.is_empty() {
        let due: Vec<u8> = out.slices().iter().flat_map(|s| s.to_vec()).collect();
        out.advance(due.len());
        bytes.extend(due);
    }
    let (mut events, mut rest) = (Vec::new(), bytes.as_slice());
    while !rest.is_empty() {
        let end = end_of_frame_at(rest, 0);
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
pub(super) fn since(at: &HashMap<SessionId, Position>) -> Since {
    let ids = at.iter().map(|(id, at)| (id.to_string(), at.to_string()));
    Since::BySession(ids.collect())
}
