//! Streams of one turn, from a client's cursor to the turn's end. A [`TurnFormat`] is the wire that
//! a turn is streamed in; a [`TurnStream`] is one client's stream, which the [`Carrier`] runs.

mod emitter_label;
mod tally;
mod counters;
mod limits;
mod selection;
mod response;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::time::Instant;
use turnwire_event::metric::TurnDimensions;
use turnwire_event::row::TurnRow;
use turnwire_event::{Event, EventType, Position, Seq, Sub, TurnId, TurnResponseId, UpstreamId};
use turnwire_hub::RingEntry;
use turnwire_identity::Caller;
use turnwire_otlp::{DeliverySpan, DeliveryWire};
use turnwire_session::{LiveSession, ReplayError, StreamGuard};
use turnwire_wire::pc3::FrameCursor;

use super::Streams;
use super::carrier::{
    Backlog, Carrier, CloseReason, Fill, FrameFormat, FrameTally as _, Framing, Limits,
    PendingWrites, SessionCursor, Wire, count_stored,
};
use super::phase::ServerPhase;
use crate::access::live_identity::LiveIdentity;
use counters::TurnCounters;
use emitter_label::EmitterLabel;
use selection::TurnSelection;

pub(crate) use response::{head, open};
use tally::frame_tag;
pub(crate) use tally::{FrameLabels, KindTally};

pub use counters::CountersByVersion;
pub(crate) use emitter_label::EmitterLabels;
pub use limits::StreamLimits;
pub(crate) use limits::StreamPermit;

/// A wire that streams turns: writes, skips and counts its frames.
pub(crate) trait TurnFormat: FrameFormat<Tally = KindTally> + Sync {
    type Framing: Framing;

    /// The name of the gauge that counts open streams.
    const OPEN_STREAMS: &'static str;

    /// Sent on an idle stream, so that no proxy closes the connection.
    const HEARTBEAT: &'static [u8];

    /// The [`FrameLabels`] of every kind of frame, fewer than 255. The kind of a frame is its index
    /// in this list.
    fn frame_labels() -> Vec<FrameLabels>;

    /// Appends the frames of `event` that a client at `client_cursor` does not have. Returns the
    /// kinds of at most four frames, packed: one byte each, the kind plus one, the first frame in
    /// the lowest byte.
    fn write_frames(
        self,
        event: &Event,
        client_cursor: Option<&FrameCursor>,
        out: &mut Vec<u8>,
    ) -> u32;

    /// Appends the error that ends a stream before the end of its turn. Returns the packed kinds,
    /// as [`write_frames`](Self::write_frames) does.
    fn write_stream_error(self, response: &TurnResponseId, out: &mut Vec<u8>) -> u32;

    /// The byte offset in `frames` after the first `skip` frames.
    fn skip_frames(frames: &[u8], skip: usize) -> usize;

    /// The kinds of the complete frames in `partial`, the written part of a slice.
    fn complete_kinds(partial: &[u8]) -> impl Iterator<Item = u8>;

    /// The number of the turn's last frame among the frames of its `terminal` event, from 0.
    fn last_frame_number(terminal: EventType) -> u8;

    /// Like [`write_frames`](Self::write_frames), but returns the [`frame_tag`].
    fn write_event(
        self,
        event: &Event,
        client_cursor: Option<&FrameCursor>,
        out: &mut Vec<u8>,
    ) -> u64 {
        let begin = out.len();
        let packed_kinds = self.write_frames(event, client_cursor, out);
        // Names come from elsewhere too: only those that have frames get a label.
        let emitter = match packed_kinds {
            0 => EmitterLabel::TURN,
            _ => EmitterLabels::global().label(event.sub_agent()),
        };
        frame_tag(packed_kinds, out.len() - begin, emitter)
    }

    /// Appends all frames of an event in the ring; the implementation of [`FrameFormat::write`].
    fn write_entry(self, entry: &RingEntry, out: &mut Vec<u8>) -> u64 {
        match Event::read(&entry.bytes) {
            Ok(event) => self.write_event(&event, None, out),
            Err(error) => {
                let position = entry.head.position;
                tracing::error!(at = %position, %error, "cannot parse an event; it gets no frame");
                0
            }
        }
    }
}

/// Counts the complete frames in `partial`, the written part of a slice.
fn tally_partial<F: TurnFormat>(partial: &[u8]) -> KindTally {
    let mut tally = KindTally::default();
    F::complete_kinds(partial).for_each(|kind| tally.count(kind, EmitterLabel::TURN, 1));
    tally
}

/// A client's request for the stream of a turn.
pub(crate) struct TurnRequest {
    /// A queued, running or ended turn.
    pub(crate) turn: TurnId,
    /// The id that its upstream gave to the response, as far as it is stored.
    pub(crate) response_id: Option<UpstreamId>,
    /// A position before every event of the turn.
    pub(crate) start: Position,
    /// The last frame that the client has.
    pub(crate) client_cursor: Option<FrameCursor>,
    /// When the turn was submitted; `None` for a client that resumes.
    pub(crate) submitted_at: Option<Instant>,
    /// Who asked for the stream.
    pub(crate) caller: Caller,
    /// The client's attendance of the turn, if the submit has begun it; otherwise
    /// [`TurnStream::open`] begins it.
    pub(crate) attendance: Option<StreamGuard>,
    /// Counts as one open stream of the owner until it is dropped.
    pub(crate) permit: StreamPermit,
}

/// True if `cursor` has another epoch than the session, or a seq that the session has not reached.
/// The sub is not compared: transient events after the last persisted one do not survive a restart.
pub(crate) fn is_ahead(live: &LiveSession, cursor: &FrameCursor) -> bool {
    let tail = live.ring.with_state(|_, tail, _| tail);
    let position = cursor.position;
    position.epoch != tail.epoch || position.seq > tail.seq
}

/// True if a client at `cursor` has the last frame of the turn.
pub(crate) fn is_complete<F: TurnFormat>(row: &TurnRow, cursor: &FrameCursor) -> bool {
    let end = row.ended.zip(row.terminal.as_ref());
    end.is_some_and(|(ended, (terminal, _))| cursor.covers(ended, F::last_frame_number(*terminal)))
}

/// The last possible position before `started`, the first event of a turn.
pub(crate) fn position_before(started: Position) -> Position {
    Position {
        epoch: started.epoch,
        seq: Seq(started.seq.0.saturating_sub(1)),
        sub: if started.seq.0 > 1 { Sub::LAST } else { Sub(0) },
    }
}

/// The [`Wire`] that streams one turn to one client. Dropping it ends the client's attendance.
pub(crate) struct TurnStream<F: TurnFormat> {
    streams: Arc<Streams>,
    live: Arc<LiveSession>,
    cursor: SessionCursor,
    selection: TurnSelection<F>,
    /// The id that the turn's upstream gave, if the stream was opened with it.
    response_id: Option<UpstreamId>,
    attendance: Option<StreamGuard>,
    counters: Arc<TurnCounters>,
    /// When the turn was submitted; `None` once the first frame is sent, and for a client that
    /// resumes.
    submitted_at: Option<Instant>,
    waker: Arc<AtomicWaker>,
    /// How long the client is who it is; `None` if that does not end.
    identity: Option<Arc<LiveIdentity>>,
    /// The span of the delivery, once a frame was written.
    delivery: Option<DeliverySpan>,
    has_sent: bool,
    _permit: StreamPermit,
}

impl<F: TurnFormat> TurnStream<F> {
    /// Opens the stream of a turn, after the client's cursor or from the turn's start. Metrics
    /// count its frames under `dimensions`.
    async fn open(
        streams: Arc<Streams>,
        live: Arc<LiveSession>,
        (format, dimensions): (F, &TurnDimensions),
        request: TurnRequest,
    ) -> Result<Self, ReplayError> {
        let client_cursor = request.client_cursor;
        let tail = live.ring.with_state(|_, tail, _| tail);
        let is_unknown =
            |cursor: FrameCursor| cursor.position.epoch != tail.epoch || cursor.position > tail;
        if client_cursor.is_some_and(is_unknown) {
            return Err(ReplayError::Expired);
        }
        let attend = || StreamGuard::new(&live, request.turn);
        let attendance = request.attendance.unwrap_or_else(attend);
        // A cursor before the turn gets the whole turn. A queued turn will start after the tail.
        let since = client_cursor.map_or(request.start, |cursor| cursor.replay_start());
        let since = since.max(request.start).min(tail);
        if request.submitted_at.is_none() {
            live.check_retained(since).await?;
            // Of a client that submits the turn nothing is in the past.
            if live.ring.cursor_after(since).is_none() {
                streams.quotas.check_replay(&live.owner)?;
            }
        }
        let selection = TurnSelection {
            turn: request.turn,
            format,
            client_cursor,
            is_complete: false,
        };
        let waker = Arc::new(AtomicWaker::new());
        let identity = streams.identities.register(&request.caller, waker.clone());
        Ok(Self {
            cursor: SessionCursor::open(&live, since, &selection).await?,
            selection,
            response_id: request.response_id,
            counters: streams.turn_counters.get::<F>(dimensions),
            streams,
            live,
            attendance: Some(attendance),
            submitted_at: request.submitted_at,
            identity,
            waker,
            delivery: None,
            has_sent: false,
            _permit: request.permit,
        })
    }

    /// Counts and logs the frames that a client does not get because it is too slow (D-75).
    fn record_dropped(&mut self, pending: &PendingWrites<F::Tally>) {
        let partial = tally_partial::<F>(pending.partial());
        let mut dropped = pending.frames.saturating_sub(partial.frames());
        if self.cursor.has_fallen_behind(&self.live) {
            self.count_missed();
        } else if !self.cursor.is_replaying() {
            let is_complete = |selection: &TurnSelection<F>| selection.is_complete;
            let selection = &mut self.selection;
            dropped += self.cursor.remaining(&self.live, selection, is_complete);
        }
        self.counters.dropped.increment(dropped);
        tracing::info!(
            session = %self.live.id,
            frames = dropped,
            "closed a turn stream: its client reads too slowly"
        );
    }

    /// Counts the frames after the cursor in a task that reads the store: some of their events have
    /// left the ring.
    fn count_missed(&self) {
        let (live, at) = (self.live.clone(), self.cursor.at);
        let (counters, mut selection) = (self.counters.clone(), self.selection.clone());
        self.streams.tasks.spawn(async move {
            match count_stored(&live, at, &mut selection).await {
                Ok(frames) => counters.dropped.increment(frames),
                Err(error) => {
                    tracing::warn!(session = %live.id, %error, "dropped frames not counted");
                }
            }
        });
    }

    /// Counts frames for the span of the delivery, which begins with the first: a queued turn has no
    /// span before it starts.
    fn trace_delivery(&mut self, frames: u64) {
        if let Some(delivery) = &mut self.delivery {
            return delivery.add_frames(frames);
        }
        if frames > 0
            && !std::mem::replace(&mut self.has_sent, true)
            && let Some(tracer) = &self.streams.tracer
        {
            self.delivery = DeliverySpan::begin(tracer, self.selection.turn, DeliveryWire::Chat);
            self.trace_delivery(frames);
        }
    }

    /// The [`Carrier`] of the stream on its socket; `head` is written with the first frames.
    fn carrier(self, framing: F::Framing, head: Vec<u8>) -> Carrier<Self> {
        let waker = self.waker.clone();
        let ring_guard = self.live.ring.register(waker.clone());
        let mut pending = PendingWrites::new();
        pending.push_control(Bytes::from(head));
        Carrier::new(self, framing, pending, waker, Some(ring_guard))
    }
}

impl<F: TurnFormat> Wire for TurnStream<F> {
    type Framing = F::Framing;
    type Tally = F::Tally;
    const OPEN_CONNECTIONS: &'static str = F::OPEN_STREAMS;

    fn phase(&self) -> &ServerPhase {
        &self.streams.phase
    }

    fn identity(&self) -> Option<&LiveIdentity> {
        self.identity.as_deref()
    }

    fn limits(&self) -> Limits {
        Limits::new(&self.streams.settings)
    }

    fn backlog(&self) -> Backlog {
        let backlog = self.cursor.backlog(&self.live);
        if !self.is_complete() {
            return backlog;
        }
        Backlog {
            newest: backlog.newest,
            has_ended: backlog.has_ended,
            ..Backlog::default()
        }
    }

    /// True while only control bytes are pending, such as the response head: frames may join them.
    fn may_fill(&self, pending: &PendingWrites<F::Tally>) -> bool {
        pending.frames == 0 && !self.is_complete()
    }

    async fn fill(&mut self, pending: &mut PendingWrites<F::Tally>) -> Result<bool, CloseReason> {
        let fill = self.cursor.fill(&self.live, &mut self.selection, pending);
        match fill.await {
            Ok(Fill::Progress) => Ok(true),
            Ok(Fill::Idle) => Ok(false),
            Ok(Fill::Overrun) => Err(CloseReason::TooSlow),
            Ok(Fill::TooLarge(frames)) => {
                let turn = self.selection.turn;
                tracing::error!(%turn, "closed a turn stream: the next frame is above 16 MiB");
                self.counters.dropped.increment(frames);
                Err(CloseReason::FrameTooLarge)
            }
            Err(error) => Err(CloseReason::of_replay(&error, &self.live)),
        }
    }

    fn is_complete(&self) -> bool {
        self.selection.is_complete
    }

    fn idle_close(&self) -> Option<CloseReason> {
        CloseReason::of_ring(&self.live)
    }

    fn heartbeat_interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(self.streams.settings.heartbeat_ms))
    }

    fn heartbeat(&mut self, pending: &mut PendingWrites<F::Tally>) -> Result<(), CloseReason> {
        pending.push_control(Bytes::from_static(F::HEARTBEAT));
        Ok(())
    }

    /// Ignores the input: a client sends nothing on a turn stream.
    async fn receive(
        &mut self,
        _: <F::Framing as Framing>::Inbound,
        _: &mut PendingWrites<F::Tally>,
    ) -> Result<(), CloseReason> {
        Ok(())
    }

    fn record_sent(&mut self, tally: &F::Tally) {
        self.counters.record_sent(tally);
        self.trace_delivery(tally.frames());
        if tally.frames() > 0
            && let Some(submitted_at) = self.submitted_at.take()
        {
            self.counters.record_first_frame(submitted_at.elapsed());
        }
    }

    fn closing(&mut self, reason: CloseReason, pending: &mut PendingWrites<F::Tally>) {
        let cannot_continue = matches!(
            reason,
            CloseReason::SessionDeleted | CloseReason::Quarantined | CloseReason::FrameTooLarge
        );
        if cannot_continue {
            let (mut frame, mut tally) = (Vec::new(), KindTally::default());
            let selection = &self.selection;
            let turn = selection.turn;
            let stored = self.response_id.clone();
            let upstream_id = stored.or_else(|| self.live.sequencer.response_id(turn));
            let response = TurnResponseId::of(turn, upstream_id);
            let packed_kinds = selection.format.write_stream_error(&response, &mut frame);
            tally.add(frame_tag(packed_kinds, frame.len(), EmitterLabel::TURN), 0);
            pending.push(frame.into(), tally);
        }
        if reason == CloseReason::TooSlow {
            self.record_dropped(pending);
        }
    }

    /// Counts the frames of a slice that was written in part, and ends the client's attendance. On
    /// a drain this does not cancel the turn.
    fn closed(&mut self, reason: CloseReason, pending: &PendingWrites<F::Tally>) {
        let partial = tally_partial::<F>(pending.partial());
        self.counters.record_sent(&partial);
        if let (Some(delivery), false) = (&mut self.delivery, reason == CloseReason::Complete) {
            delivery.fail(reason.label());
        }
        if let Some(attendance) = self.attendance.take()
            && reason.leaves_quietly()
        {
            attendance.leave_quietly();
        }
    }
}
