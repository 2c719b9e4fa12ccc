//! What a client says on a connection, and the answers.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use turnwire_event::fold::replay::Missed;
use turnwire_event::{Position, ResponseId, TurnId, metric};
use turnwire_hub::Closed;
use turnwire_session::{CancelOutcome, Error, LiveSession, ReplayError, WatchGuard};
use turnwire_wire::session::{
    self as wire, Ack, ClientFrame, ClientFrameError, Close, Positions, SessionSummary, Subscribe,
    SubscribeError,
};

use super::super::place::Place;
use super::super::workers::{NoWorkers, Workers};
use super::{Connection, Subscription};

impl Connection {
    /// Takes in one message; the error ends the connection.
    pub(super) async fn receive(&mut self, message: Message) -> Result<(), Close> {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) => return Err(Close::Binary),
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {
                return Ok(());
            }
        };
        match ClientFrame::read(text.as_str()) {
            Ok(ClientFrame::Subscribe(subscribe)) => return self.subscribe(subscribe).await,
            Ok(ClientFrame::Cancel { turn_id, reason }) => self.cancel(&turn_id, reason.as_deref()),
            Ok(ClientFrame::Ping { nonce }) => self.send(|out| wire::pong(&nonce, out)),
            Ok(ClientFrame::Pong { nonce }) if self.asked(&nonce) => self.pings = 0,
            Ok(ClientFrame::Pong { .. }) => {}
            Ok(ClientFrame::Unknown { .. }) | Err(ClientFrameError::Malformed { .. }) => {
                self.warn("unknown_frame")
            }
            Err(ClientFrameError::Subscribe(error)) => self.refuse(&error),
            Err(ClientFrameError::NotJson) => return Err(Close::NotJson),
        }
        Ok(())
    }

    /// Whether `nonce` is one of the pings that wait for an answer.
    fn asked(&self, nonce: &str) -> bool {
        let waiting = self.nonce.saturating_sub(u64::from(self.pings))..self.nonce;
        nonce
            .parse::<u64>()
            .is_ok_and(|nonce| nonce > 0 && waiting.contains(&(nonce - 1)))
    }

    fn refuse(&mut self, error: &SubscribeError) {
        metrics::counter!(metric::WS_SUBSCRIBE_ERROR_TOTAL, "code" => error.code.name())
            .increment(1);
        // The client is there and may send a better one: it has its time again.
        self.subscribe_by = Instant::now() + self.streams.options.subscribe_wait;
        self.send(|out| wire::subscribe_error(error, out));
    }

    fn cancel(&self, turn: &str, reason: Option<&str>) {
        let Ok(live) = &self.live else { return };
        let id = turn
            .parse::<TurnId>()
            .or_else(|_| turn.parse::<ResponseId>().map(TurnId::from));
        let canceller = &self.streams.canceller;
        let ask = |live: &Arc<LiveSession>, id| canceller.request(live, id, reason);
        // A worker that comes along is stopped where it is seen.
        let workers = self.workers().into_iter().flat_map(Workers::lives);
        let requested = id.map(|id| match ask(live, id) {
            CancelOutcome::NotRunning => {
                let mut asked = workers.map(|worker| ask(worker, id));
                let found = asked.find(|requested| !matches!(requested, CancelOutcome::NotRunning));
                found.unwrap_or(CancelOutcome::NotRunning)
            }
            requested => requested,
        });
        match requested {
            Ok(CancelOutcome::Requested(_) | CancelOutcome::Withdrawn(_)) => {}
            Ok(CancelOutcome::AlreadyRequested) => self.warn("redundant_cancel"),
            Ok(CancelOutcome::NotRunning) | Err(_) => self.warn("unknown_turn"),
        }
    }

    async fn subscribe(&mut self, subscribe: Subscribe) -> Result<(), Close> {
        let started = Instant::now();
        let live = match &self.live {
            Ok(live) if live.ring.closed() == Some(Closed::Quarantined) => {
                return Err(Close::Quarantined);
            }
            Ok(live) if live.ring.closed().is_none() => live.clone(),
            Err(Error::Quarantined) => return Err(Close::Quarantined),
            Ok(_) | Err(Error::SessionNotFound) => {
                self.refuse(&SubscribeError::session_not_found());
                return Ok(());
            }
            Err(_) => return Err(Close::Internal),
        };
        let mut next = match self.start(&live, &subscribe).await {
            Ok(next) => next,
            Err(NoStart::Told(error)) => {
                self.refuse(&error);
                return Ok(());
            }
            Err(NoStart::Session(Error::SessionNotFound)) => {
                self.refuse(&SubscribeError::session_not_found());
                return Ok(());
            }
            Err(NoStart::Session(Error::Quarantined)) => {
                live.quarantine();
                return Err(Close::Quarantined);
            }
            Err(NoStart::Session(_)) => return Err(Close::Internal),
        };
        // One watcher a connection, however often it subscribes.
        if next._watcher.is_none() {
            let before = self.subscription.take().and_then(|before| before._watcher);
            next._watcher = Some(before.unwrap_or_else(|| WatchGuard::new(&live)));
        }
        self.subscription = Some(next);
        metrics::histogram!(metric::WS_SEAM_MS).record(started.elapsed().as_secs_f64() * 1e3);
        Ok(())
    }

    /// Answers a subscribe and says where it starts. The error is the answer, or nothing to say.
    async fn start(
        &mut self,
        live: &Arc<LiveSession>,
        subscribe: &Subscribe,
    ) -> Result<Subscription, NoStart> {
        let Subscribe {
            filter,
            since,
            snapshot,
        } = subscribe;
        if *snapshot {
            let taken = live
                .snapshot(self.streams.options.snapshot_messages)
                .await?;
            let summary = SessionSummary::new(&taken.row, taken.current_turn);
            let place = Place::new(taken.at, taken.cursor);
            let started = self.started(live, subscribe, place, 0).await?;
            self.send(|out| wire::snapshot(&summary, &taken.messages, taken.at, out));
            return Ok(started);
        }
        if let Some(since) = since {
            let at = since.position(live.id)?;
            let max = self.streams.options.replay_max;
            let catch_up = live.catch_up(at, filter, Missed::Ends, max).await;
            let catch_up = catch_up.map_err(self.no_replay())?;
            let count = catch_up.count;
            let place = Place::before(at, catch_up);
            let started = self.started(live, subscribe, place, count).await?;
            metrics::counter!(metric::WS_REPLAY_EVENTS_TOTAL).increment(count);
            return Ok(started);
        }
        let Some(mut running) = self.subscription.take() else {
            let place = live.ring.look(|_, tail, cursor| Place::new(tail, cursor));
            return self.started(live, subscribe, place, 0).await;
        };
        if let Err(error) = self.change(live, subscribe, &mut running).await {
            self.subscription = Some(running);
            return Err(error);
        }
        self.acknowledge(live, subscribe, &running, 0);
        Ok(running)
    }

    /// A new filter on a live connection: it goes on where it is.
    async fn change(
        &self,
        live: &Arc<LiveSession>,
        subscribe: &Subscribe,
        running: &mut Subscription,
    ) -> Result<(), NoStart> {
        if !subscribe.filter.include_worker_sessions {
            running
                .leave_workers(live)
                .await
                .map_err(self.no_replay())?;
        } else if running.workers.is_none() {
            running.workers = self.workers_of(live, subscribe, running.place.at).await?;
        }
        running.filter = subscribe.filter.clone();
        Ok(())
    }

    /// How a client is told that what it has missed cannot be told.
    fn no_replay(&self) -> impl Fn(ReplayError) -> NoStart {
        let max = self.streams.options.replay_max;
        move |error| match error {
            ReplayError::Expired => SubscribeError::cursor_expired().into(),
            ReplayError::TooLarge(..) => SubscribeError::replay_too_large(max).into(),
            ReplayError::Session(error) => error.into(),
        }
    }

    /// A subscription from a place on, acknowledged.
    async fn started(
        &mut self,
        live: &Arc<LiveSession>,
        subscribe: &Subscribe,
        place: Place,
        count: u64,
    ) -> Result<Subscription, NoStart> {
        let workers = self.workers_of(live, subscribe, place.at).await?;
        let started = Subscription::new(subscribe.filter.clone(), place, workers);
        self.acknowledge(live, subscribe, &started, count);
        Ok(started)
    }

    fn acknowledge(
        &mut self,
        live: &Arc<LiveSession>,
        subscribe: &Subscribe,
        started: &Subscription,
        replay_event_count: u64,
    ) {
        let ack = Ack {
            resolved_filter: subscribe.filter.spec(),
            since: subscribe.since.as_ref(),
            snapshot: subscribe.snapshot,
            replay_event_count,
            positions: started.positions(live),
        };
        self.send(|out| wire::ack(&ack, out));
    }

    /// The workers that come along, if they are asked for. Looked up after the place the
    /// subscription starts from, which is `at`: none can begin unseen in between.
    async fn workers_of(
        &self,
        live: &Arc<LiveSession>,
        subscribe: &Subscribe,
        at: Position,
    ) -> Result<Option<Box<Workers>>, NoStart> {
        let filter = &subscribe.filter;
        if !filter.include_worker_sessions {
            return Ok(None);
        }
        let named = match &subscribe.since {
            Some(since) if !subscribe.snapshot => since.workers(live.id)?,
            _ => Positions::new(),
        };
        let (streams, waker) = (self.streams.clone(), self.waker.clone());
        let (name, whence) = (self.name.clone(), (at, named));
        let workers = Workers::of(streams, waker, name, (live, filter), whence);
        match Box::pin(workers).await {
            Ok(workers) => Ok(Some(workers)),
            Err(NoWorkers::Told(error)) => Err(error.into()),
            // The parent itself is there and whole.
            Err(NoWorkers::Session(_)) => Err(Error::Internal.into()),
        }
    }
}

/// Why a subscribe does not start anything.
enum NoStart {
    /// For a reason the client is told.
    Told(SubscribeError),
    /// Because of the session.
    Session(Error),
}

impl From<SubscribeError> for NoStart {
    fn from(error: SubscribeError) -> Self {
        Self::Told(error)
    }
}

impl From<Error> for NoStart {
    fn from(error: Error) -> Self {
        Self::Session(error)
    }
}
