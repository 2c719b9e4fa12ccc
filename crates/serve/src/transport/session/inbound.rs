//! Frames of a client of the session wire, and the answers to them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use turnwire_event::body::bus::HandlerWarning;
use turnwire_event::code::TurnState;
use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{EventFilter, Position, SessionId, TurnId, metric};
use turnwire_hub::RingClosed;
use turnwire_identity::Lease;
use turnwire_session::{
    CancelOutcome, Error, LISTED_PATH_BYTES_MAX, LiveSession, PageBounds, SessionSnapshot,
    WatchGuard,
};
use turnwire_wire::budget::{cut_to_newest, json_bytes};
use turnwire_wire::rest::turn::TurnInfo;
use turnwire_wire::session::{
    self as wire, CancelAck, CancelError, CancelErrorCode, ClientFrame, ClientFrameError, RenewAck,
    RenewError, RenewErrorCode, SessionCloseReason, SessionPositions, SessionSummary, SnapshotWork,
    SubscribeAck, SubscribeError, SubscribeFrame,
};

use super::super::carrier::SessionCursor;
use super::failure::SubscribeFailure;
use super::format::EventWrites;
use super::stream::{SessionStream, send, subscribe_deadline};
use super::subscription::Subscription;
use super::workers::WorkerStreams;
use crate::config::stream::Stream;

/// How long a cancel of a turn that is not running at hand waits for the read of its state, and a
/// renewal for the keys of the issuer: both take milliseconds, and the connection delivers nothing
/// meanwhile, nor is it closed if its identity ends.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

impl SessionStream {
    /// Handles one [`Message`] of the client; an error closes the connection.
    pub(super) async fn handle(
        &mut self,
        message: Message,
        pending: &mut EventWrites,
    ) -> Result<(), SessionCloseReason> {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) => return Err(SessionCloseReason::Binary),
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {
                return Ok(());
            }
        };
        match ClientFrame::parse(text.as_str()) {
            Ok(ClientFrame::Subscribe(subscribe)) => {
                return self.subscribe(subscribe, pending).await;
            }
            Ok(ClientFrame::Cancel { turn_id, reason }) => {
                match self.cancel(&turn_id, reason.as_deref()).await {
                    Ok(ack) => send(pending, |out| wire::write_cancel_ack(&ack, out)),
                    Err(code) => {
                        let error = CancelError::of(code, &turn_id);
                        send(pending, |out| wire::write_cancel_error(&error, out));
                    }
                }
            }
            Err(malformed @ ClientFrameError::Malformed { kind: "cancel", .. }) => {
                let error = CancelError::invalid_frame(&malformed.to_string());
                send(pending, |out| wire::write_cancel_error(&error, out));
            }
            Ok(ClientFrame::Renew { token }) => self.renew(&token.0, pending).await,
            Err(ClientFrameError::Malformed { kind: "renew", .. }) => {
                let error = RenewError::of(RenewErrorCode::InvalidFrame);
                send(pending, |out| wire::write_renew_error(&error, out));
            }
            Ok(ClientFrame::Ping { nonce }) => send(pending, |out| wire::write_pong(&nonce, out)),
            Ok(ClientFrame::Pong { nonce }) if self.is_unanswered(&nonce) => {
                self.unanswered_pings = 0;
            }
            Ok(ClientFrame::Pong { .. }) => {}
            Ok(ClientFrame::Unknown { .. }) | Err(ClientFrameError::Malformed { .. }) => {
                self.warn(HandlerWarning::UNKNOWN_FRAME)
            }
            Err(ClientFrameError::Subscribe(error)) => self.refuse(&error, pending),
            Err(ClientFrameError::NotJson) => return Err(SessionCloseReason::NotJson),
        }
        Ok(())
    }

    /// True if `nonce` belongs to an unanswered ping.
    fn is_unanswered(&self, nonce: &str) -> bool {
        let answered = self
            .last_nonce
            .saturating_sub(u64::from(self.unanswered_pings));
        nonce
            .parse::<u64>()
            .is_ok_and(|nonce| nonce > answered && nonce <= self.last_nonce)
    }

    fn refuse(&mut self, error: &SubscribeError, pending: &mut EventWrites) {
        metrics::counter!(metric::WS_SUBSCRIBE_ERROR_TOTAL, "code" => error.code.name())
            .increment(1);
        // The client may send a better subscribe, and has the full time for it.
        self.subscribe_deadline = subscribe_deadline(&self.streams);
        send(pending, |out| wire::write_subscribe_error(error, out));
    }

    /// Gives the connection the identity of a new token, and answers. Without authentication there is
    /// nothing to renew: an identity never ends.
    async fn renew(&self, token: &str, pending: &mut EventWrites) {
        let lease = match &self.identity {
            Some(identity) => {
                let renewed = self.streams.identities.renew(identity, token);
                let renewed = tokio::time::timeout(ANSWER_WAIT, renewed).await;
                renewed.unwrap_or(Err(RenewErrorCode::Unavailable))
            }
            None => Ok(Lease::UNLIMITED),
        };
        match lease {
            Ok(lease) => {
                let ack = RenewAck {
                    expires_at: lease.expires_at,
                };
                send(pending, |out| wire::write_renew_ack(&ack, out));
            }
            Err(error) => {
                let error = RenewError::of(error);
                send(pending, |out| wire::write_renew_error(&error, out));
            }
        }
    }

    /// Requests the cancel of a turn, and returns the answer for the client.
    pub(super) async fn cancel(
        &self,
        turn: &str,
        reason: Option<&str>,
    ) -> Result<CancelAck, CancelErrorCode> {
        let live = self.live.as_ref();
        let live = live.map_err(|_| CancelErrorCode::SessionNotFound)?;
        let turn_id = self.find_turn(live, turn).await.inspect_err(|_| {
            self.warn(HandlerWarning::UNKNOWN_TURN);
        })?;
        // A worker that is delivered can be cancelled where its events are seen.
        let workers = self.workers().into_iter().flat_map(WorkerStreams::lives);
        let canceller = &self.streams.canceller;
        let mut requests = [live]
            .into_iter()
            .chain(workers)
            .map(|live| canceller.request(live, turn_id, reason));
        let state = match requests.find(|outcome| *outcome != CancelOutcome::NotRunning) {
            Some(CancelOutcome::Requested(_)) => TurnState::Cancelling,
            Some(CancelOutcome::Withdrawn(_)) => TurnState::Cancelled,
            Some(CancelOutcome::AlreadyRequested) => {
                self.warn(HandlerWarning::REDUNDANT_CANCEL);
                TurnState::Cancelling
            }
            Some(CancelOutcome::NotRunning) | None => {
                self.cancel_stored(live, turn_id, reason).await?
            }
        };
        Ok(CancelAck { turn_id, state })
    }

    /// The turn that a client names by its id or by the id of its response.
    async fn find_turn(&self, live: &LiveSession, turn: &str) -> Result<TurnId, CancelErrorCode> {
        if let Ok(turn) = TurnId::named(turn) {
            return Ok(turn);
        }
        let upstream_id = turn.parse().map_err(|_| CancelErrorCode::TurnNotFound)?;
        let found = self
            .streams
            .canceller
            .turn_of_response(&live.owner, upstream_id);
        match tokio::time::timeout(ANSWER_WAIT, found).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(Error::TurnNotFound)) => Err(CancelErrorCode::TurnNotFound),
            Ok(Err(_)) | Err(_) => Err(CancelErrorCode::Busy),
        }
    }

    /// The workers of the subscription, if it includes them.
    fn workers(&self) -> Option<&WorkerStreams> {
        let subscription = self.subscription.as_ref();
        subscription.and_then(|subscription| subscription.workers.as_deref())
    }

    /// Cancels a turn that runs in none of the sessions at hand: it has ended, or is that of a worker
    /// that is not looked up yet.
    async fn cancel_stored(
        &self,
        live: &Arc<LiveSession>,
        turn_id: TurnId,
        reason: Option<&str>,
    ) -> Result<TurnState, CancelErrorCode> {
        let positions = self.workers().map(WorkerStreams::positions);
        let includes = |id: SessionId| {
            let mut workers = positions.iter();
            id == live.id || workers.any(|positions| positions.contains_key(&id))
        };
        let canceller = &self.streams.canceller;
        let stored = canceller.request_stored(&live.owner, includes, turn_id, reason);
        let answer = match tokio::time::timeout(ANSWER_WAIT, stored).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Error::SessionNotFound)) => Err(CancelErrorCode::SessionNotFound),
            Ok(Err(Error::TurnNotFound)) if live.ring.is_closed() => {
                Err(CancelErrorCode::SessionNotFound)
            }
            Ok(Err(Error::TurnNotFound)) => Err(CancelErrorCode::TurnNotFound),
            Ok(Err(_)) | Err(_) => Err(CancelErrorCode::Busy),
        };
        match answer {
            Ok((CancelOutcome::Requested(_) | CancelOutcome::Withdrawn(_), _)) => {}
            Ok((CancelOutcome::AlreadyRequested, _)) => self.warn(HandlerWarning::REDUNDANT_CANCEL),
            Ok((CancelOutcome::NotRunning, _)) | Err(_) => self.warn(HandlerWarning::UNKNOWN_TURN),
        }
        answer.map(|(_, state)| state)
    }

    async fn subscribe(
        &mut self,
        subscribe: SubscribeFrame,
        pending: &mut EventWrites,
    ) -> Result<(), SessionCloseReason> {
        let received_at = Instant::now();
        let live = match &self.live {
            Ok(live) if live.ring.close_reason() == Some(RingClosed::Quarantined) => {
                return Err(SessionCloseReason::Quarantined);
            }
            Ok(live) if live.ring.close_reason().is_none() => live.clone(),
            Err(Error::Quarantined | Error::DatabaseDamaged) => {
                return Err(SessionCloseReason::Quarantined);
            }
            Ok(_) | Err(Error::SessionNotFound) => {
                self.refuse(&SubscribeError::session_not_found(), pending);
                return Ok(());
            }
            Err(Error::TooManyReads) => return Err(SessionCloseReason::Busy),
            Err(_) => return Err(SessionCloseReason::Internal),
        };
        let mut started = match self.start(&live, &subscribe, pending).await {
            Ok(started) => started,
            Err(SubscribeFailure::Refused(error)) => {
                self.refuse(&error, pending);
                return Ok(());
            }
            Err(SubscribeFailure::Session(Error::SessionNotFound)) => {
                self.refuse(&SubscribeError::session_not_found(), pending);
                return Ok(());
            }
            Err(SubscribeFailure::Session(Error::Quarantined)) => {
                live.quarantine();
                return Err(SessionCloseReason::Quarantined);
            }
            Err(SubscribeFailure::Session(Error::TooManyReads)) => {
                return Err(SessionCloseReason::Busy);
            }
            Err(SubscribeFailure::Session(Error::QuotaExceeded(_))) => {
                return Err(SessionCloseReason::QuotaExceeded);
            }
            Err(SubscribeFailure::Session(Error::DatabaseDamaged)) => {
                return Err(SessionCloseReason::Quarantined);
            }
            Err(SubscribeFailure::Session(_)) => return Err(SessionCloseReason::Internal),
        };
        // One watcher a connection, however often it subscribes.
        if started.watcher.is_none() {
            let previous = self.subscription.take();
            let watcher = previous.and_then(|previous| previous.watcher);
            started.watcher = Some(watcher.unwrap_or_else(|| WatchGuard::new(&live)));
        }
        started.subscribed_at = Some(received_at);
        self.subscription = Some(started);
        Ok(())
    }

    /// Answers a subscribe; returns the [`Subscription`] that it starts.
    async fn start(
        &mut self,
        live: &Arc<LiveSession>,
        subscribe: &SubscribeFrame,
        pending: &mut EventWrites,
    ) -> Result<Subscription, SubscribeFailure> {
        let quotas = &self.streams.quotas;
        quotas.count_subscribe(&live.owner)?;
        if subscribe.snapshot || subscribe.since.is_some() {
            quotas.check_replay(&live.owner)?;
        }
        let settings = &self.streams.settings;
        let (mut snapshot, mut replayed) = (None, 0);
        let cursor = if subscribe.snapshot {
            let loaded = live.snapshot(snapshot_bounds(settings)).await?;
            let loaded = snapshot.insert(loaded);
            SessionCursor::in_ring(loaded.at, loaded.cursor)
        } else if let Some(since) = &subscribe.since {
            let (at, max) = (since.position(live.id)?, settings.replay_max);
            let replay = live.catch_up(at, &subscribe.filter, FinishedReplay::Ends, max);
            let replay = replay.await;
            let replay = replay.map_err(|error| SubscribeFailure::of_replay(error, max))?;
            replayed = replay.count;
            SessionCursor::in_replay(at, replay)
        } else if let Some(mut running) = self.subscription.take() {
            if let Err(error) = self.change(live, subscribe, &mut running).await {
                self.subscription = Some(running);
                return Err(error);
            }
            acknowledge(live, subscribe, &running, 0, pending);
            return Ok(running);
        } else {
            let in_ring = |_: &_, tail, index| SessionCursor::in_ring(tail, index);
            live.ring.with_state(in_ring)
        };
        let workers = self.open_workers(live, subscribe, cursor.at).await?;
        let started = Subscription {
            filter: subscribe.filter.clone(),
            cursor,
            workers,
            watcher: None,
            subscribed_at: None,
        };
        acknowledge(live, subscribe, &started, replayed, pending);
        metrics::counter!(metric::WS_REPLAY_EVENTS_TOTAL).increment(replayed);
        if let Some(snapshot) = snapshot {
            let filter = &started.filter;
            let sent = send_snapshot(snapshot, filter, settings.snapshot_bytes, pending);
            live.charge_replay(sent);
        }
        Ok(started)
    }

    /// Gives a running [`Subscription`] a new filter at its current position.
    async fn change(
        &self,
        live: &Arc<LiveSession>,
        subscribe: &SubscribeFrame,
        running: &mut Subscription,
    ) -> Result<(), SubscribeFailure> {
        if !subscribe.filter.include_worker_sessions {
            running.workers = None;
        } else if running.workers.is_none() {
            running.workers = self
                .open_workers(live, subscribe, running.cursor.at)
                .await?;
        }
        running.set_filter(&subscribe.filter);
        Ok(())
    }

    /// The [`WorkerStreams`], if the client subscribes to workers too. They are looked up after the
    /// position `at` of the subscription was taken, so that no worker can start unnoticed in between.
    async fn open_workers(
        &self,
        live: &Arc<LiveSession>,
        subscribe: &SubscribeFrame,
        at: Position,
    ) -> Result<Option<Box<WorkerStreams>>, SubscribeFailure> {
        let filter = &subscribe.filter;
        if !filter.include_worker_sessions {
            return Ok(None);
        }
        let named = match &subscribe.since {
            Some(since) if !subscribe.snapshot => since.workers(live.id)?,
            _ => SessionPositions::new(),
        };
        let (streams, waker, name) = (self.streams.clone(), self.waker.clone(), self.name.clone());
        let workers = WorkerStreams::open(streams, waker, name, (live, filter), (at, named));
        match Box::pin(workers).await {
            // The parent itself exists and is not damaged.
            Err(SubscribeFailure::Session(error)) if error != Error::TooManyReads => {
                Err(Error::Internal.into())
            }
            opened => opened.map(Some),
        }
    }
}

/// The bounds of the messages in a snapshot.
fn snapshot_bounds(settings: &Stream) -> PageBounds {
    PageBounds {
        rows: settings.snapshot_messages,
        bytes: settings.snapshot_bytes,
    }
}

/// Sends a snapshot of at most `bytes_max`, with the newest messages that fit. Hidden work is in it
/// only if `filter` lets hidden events through. Returns its size.
fn send_snapshot(
    mut snapshot: SessionSnapshot,
    filter: &EventFilter,
    bytes_max: usize,
    pending: &mut EventWrites,
) -> usize {
    let path = &mut snapshot.row.workspace_path;
    path.take_if(|path| path.len() > LISTED_PATH_BYTES_MAX); // of an older release
    let summary = SessionSummary::new(&snapshot.row, snapshot.current_turn);
    let last_turn = snapshot.last_turn.map(TurnInfo::from);
    let includes_hidden = filter.includes_suppressed();
    let mut open = SnapshotWork::new(snapshot.work, snapshot.inputs, includes_hidden);
    let bytes_max =
        bytes_max.saturating_sub(json_bytes(&summary) + json_bytes(&open) + json_bytes(&last_turn));
    let is_cut = cut_to_newest(&mut snapshot.messages, bytes_max);
    // The deltas of a message without its content are not applied, those of its inputs neither.
    let streaming = snapshot.messages.last();
    if streaming.is_some_and(|message| message.omitted_bytes.is_some()) {
        open.inputs.clear();
    }
    let oldest = snapshot.messages.first();
    let oldest = oldest.filter(|_| is_cut || snapshot.has_older);
    let frame = wire::SnapshotFrame {
        session: &summary,
        messages: &snapshot.messages,
        next: oldest.map(|message| message.id),
        open: &open,
        last_turn: last_turn.as_ref(),
        snapshot_at_event_id: snapshot.at,
    };
    let mut sent = 0;
    send(pending, |out| {
        wire::write_snapshot(&frame, out);
        sent = out.len();
    });
    sent
}

fn acknowledge(
    live: &Arc<LiveSession>,
    subscribe: &SubscribeFrame,
    started: &Subscription,
    replay_event_count: u64,
    pending: &mut EventWrites,
) {
    let ack = SubscribeAck {
        version: wire::SESSION_WIRE_VERSION,
        resolved_filter: subscribe.filter.spec(),
        since: subscribe.since.as_ref(),
        snapshot: subscribe.snapshot,
        replay_event_count,
        positions: started.positions(live),
    };
    send(pending, |out| wire::write_ack(&ack, out));
}
