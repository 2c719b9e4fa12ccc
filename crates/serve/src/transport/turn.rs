//! Streams of one turn: from a client's cursor to the turn's end, then the stream is over. A wire
//! of this kind is a [`TurnFormat`]; everything else is here and in the [`Carrier`].

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
use turnwire_event::row::TurnRow;
use turnwire_event::{Event, EventType, Position, Seq, Sub, TurnId};
use turnwire_hub::RingEntry;
use turnwire_session::{LiveSession, ReplayError, StreamGuard};
use turnwire_wire::pc3::FrameCursor;

use super::Streams;
use super::carrier::{
    Backlog, Carrier, CloseReason, Fill, FrameFormat, FrameTally as _, Framing, Limits,
    PendingWrites, SessionCursor, Wire,
};
use super::phase::ServerPhase;
use counters::TurnCounters;
use selection::TurnSelection;

pub(crate) use response::{head, open};
use tally::word;
pub(crate) use tally::{FrameMark, MarkTally};

pub use counters::CountersByVersion;
pub use limits::StreamLimits;
pub(crate) use limits::StreamPermit;

/// One wire that streams turns: how its frames are written, skipped and counted.
pub(crate) trait TurnFormat: FrameFormat<Tally = MarkTally> + Sync {
    type Framing: Framing;

    /// The name of the gauge of open streams.
    const OPEN_STREAMS: &'static str;

    /// Sent after silence, so that no proxy closes the connection.
    const HEARTBEAT: &'static [u8];

    /// Every kind of frame, fewer than 255. The methods below refer to kinds by their index here.
    fn marks() -> Vec<FrameMark>;

    /// Appends the frames of `event` that a client at `client_cursor` lacks; returns their kinds:
    /// at most four, a byte each, the index plus one, the first frame lowest.
    fn write_frames(
        self,
        event: &Event,
        client_cursor: Option<&FrameCursor>,
        out: &mut Vec<u8>,
    ) -> u32;

    /// Appends the end of a stream whose turn cannot be delivered to its end; returns its kinds as
    /// [`write_frames`](Self::write_frames) does.
    fn write_lost(self, turn: TurnId, out: &mut Vec<u8>) -> u32;

    /// The offset in `frames` behind the first `skip` of them.
    fn skip_frames(frames: &[u8], skip: usize) -> usize;

    /// The kinds of the complete frames at the beginning of a slice that was written in part.
    fn partial_marks(partial: &[u8]) -> impl Iterator<Item = u8>;

    /// The index of the last frame of a turn that ended with `terminal`.
    fn last_frame(terminal: EventType) -> u8;

    /// Like [`write_frames`](Self::write_frames), but returns the word that the ring keeps.
    fn write_event(
        self,
        event: &Event,
        client_cursor: Option<&FrameCursor>,
        out: &mut Vec<u8>,
    ) -> u64 {
        let begin = out.len();
        let marks = self.write_frames(event, client_cursor, out);
        word(marks, out.len() - begin)
    }

    /// Appends all frames of an event in the ring: the [`FrameFormat::write`] of such a wire.
    fn write_entry(self, entry: &RingEntry, out: &mut Vec<u8>) -> u64 {
        match Event::read(&entry.bytes) {
            Ok(event) => self.write_event(&event, None, out),
            Err(error) => {
                tracing::error!(at = %entry.head.position, %error, "an event cannot be read");
                0
            }
        }
    }
}

/// The tally of the complete frames at the beginning of a slice that was written in part.
fn tally_partial<F: TurnFormat>(partial: &[u8]) -> MarkTally {
    let mut tally = MarkTally::default();
    F::partial_marks(partial).for_each(|mark| tally.count(mark, 1));
    tally
}

/// A client's request for the stream of a turn.
pub(crate) struct TurnRequest {
    /// The turn, queued, running or ended.
    pub(crate) turn: TurnId,
    /// A position before every event of the turn.
    pub(crate) start: Position,
    /// The last frame that the client has.
    pub(crate) client_cursor: Option<FrameCursor>,
    /// When the turn was submitted; `None` for a client that resumes.
    pub(crate) submitted_at: Option<Instant>,
    /// The client's attendance, if the submit has counted it already; else [`TurnStream::open`] does.
    pub(crate) attendance: Option<StreamGuard>,
    /// Counts the stream as open for its owner.
    pub(crate) permit: StreamPermit,
}

/// True if `cursor` is ahead of the session. Transient events are not looked up: those after the last
/// stored one do not survive a restart.
pub(crate) fn is_ahead(live: &LiveSession, cursor: &FrameCursor) -> bool {
    let tail = live.ring.with_state(|_, tail, _| tail);
    let at = cursor.position;
    at.epoch != tail.epoch || at.seq > tail.seq
}

/// True if a client at `cursor` has the last frame of the turn: no frame will ever follow.
pub(crate) fn is_complete<F: TurnFormat>(row: &TurnRow, cursor: &FrameCursor) -> bool {
    let end = row.ended.zip(row.terminal.as_ref());
    end.is_some_and(|(ended, (kind, _))| cursor.covers(ended, F::last_frame(*kind)))
}

/// The last possible position before the first event of a turn.
pub(crate) fn position_before(started: Position) -> Position {
    Position {
        epoch: started.epoch,
        seq: Seq(started.seq.0.saturating_sub(1)),
        sub: if started.seq.0 > 1 { Sub::LAST } else { Sub(0) },
    }
}

/// The [`Wire`] of one turn to one client. Dropping it ends the attendance of the client.
pub(crate) struct TurnStream<F: TurnFormat> {
    streams: Arc<Streams>,
    live: Arc<LiveSession>,
    cursor: SessionCursor,
    selection: TurnSelection<F>,
    attendance: Option<StreamGuard>,
    counters: Arc<TurnCounters>,
    /// Taken when the first frame is written.
    submitted_at: Option<Instant>,
    _permit: StreamPermit,
}

impl<F: TurnFormat> TurnStream<F> {
    /// Opens the stream of a turn, behind the client's cursor or from its start. Its frames are
    /// counted for a version of the agent's `definition`.
    async fn open(
        streams: Arc<Streams>,
        live: Arc<LiveSession>,
        (format, definition): (F, &str),
        request: TurnRequest,
    ) -> Result<Self, ReplayError> {
        let client_cursor = request.client_cursor;
        let tail = live.ring.with_state(|_, tail, _| tail);
        let is_foreign =
            |cursor: FrameCursor| cursor.position.epoch != tail.epoch || cursor.position > tail;
        if client_cursor.is_some_and(is_foreign) {
            return Err(ReplayError::Expired);
        }
        let attend = || StreamGuard::new(&live, request.turn);
        let attendance = request.attendance.unwrap_or_else(attend);
        // A cursor from before the turn, as a submit gives, means all of it; a turn that waits
        // will start after the tail.
        let since = client_cursor.map_or(request.start, |cursor| cursor.replay_start());
        let since = since.max(request.start).min(tail);
        let selection = TurnSelection {
            turn: request.turn,
            format,
            client_cursor,
            is_complete: false,
        };
        Ok(Self {
            cursor: SessionCursor::open(&live, since, &selection).await?,
            selection,
            counters: streams.turn_counters.get::<F>(definition),
            streams,
            live,
            attendance: Some(attendance),
            submitted_at: request.submitted_at,
            _permit: request.permit,
        })
    }

    /// Counts the frames that a client lost because it was too slow (D-75).
    fn record_dropped(&mut self, pending: &PendingWrites<F::Tally>) {
        let partial = tally_partial::<F>(pending.partial());
        let mut dropped = pending.frames.saturating_sub(partial.frames());
        if !self.cursor.is_replaying() {
            let is_complete = |selection: &TurnSelection<F>| selection.is_complete;
            let selection = &mut self.selection;
            dropped += self.cursor.remaining(&self.live, selection, is_complete);
        }
        self.counters.dropped.increment(dropped);
        tracing::info!(
            session = %self.live.id,
            frames = dropped,
            "a turn stream was too slow and was closed"
        );
    }

    /// The [`Carrier`] of the stream on its socket; `head` is written with the first frames.
    fn carrier(self, framing: F::Framing, head: Vec<u8>) -> Carrier<Self> {
        let waker = Arc::new(AtomicWaker::new());
        let seat = self.live.ring.register(waker.clone());
        let mut pending = PendingWrites::new();
        pending.push_control(Bytes::from(head));
        Carrier::new(self, framing, pending, waker, Some(seat))
    }
}

impl<F: TurnFormat> Wire for TurnStream<F> {
    type Framing = F::Framing;
    type Tally = F::Tally;
    const OPEN_CONNECTIONS: &'static str = F::OPEN_STREAMS;

    fn phase(&self) -> &ServerPhase {
        &self.streams.phase
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

    /// The head alone may wait for the first frames.
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
                tracing::error!(%turn, "a frame is above 16 MiB: its stream ends without it");
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

    /// A turn stream takes no commands.
    async fn receive(
        &mut self,
        _: <F::Framing as Framing>::Inbound,
        _: &mut PendingWrites<F::Tally>,
    ) -> Result<(), CloseReason> {
        Ok(())
    }

    fn record_sent(&mut self, tally: &F::Tally) {
        self.counters.record_sent(tally);
        if tally.frames() > 0
            && let Some(submitted_at) = self.submitted_at.take()
        {
            self.counters.record_first_frame(submitted_at.elapsed());
        }
    }

    fn closing(&mut self, reason: CloseReason, pending: &mut PendingWrites<F::Tally>) {
        let is_lost = matches!(
            reason,
            CloseReason::SessionDeleted | CloseReason::Quarantined | CloseReason::FrameTooLarge
        );
        if is_lost {
            let (mut frame, mut tally) = (Vec::new(), MarkTally::default());
            let selection = &self.selection;
            let marks = selection.format.write_lost(selection.turn, &mut frame);
            tally.add(word(marks, frame.len()), 0);
            pending.push(frame.into(), tally);
        }
        if reason == CloseReason::TooSlow {
            self.record_dropped(pending);
        }
    }

    /// Counts the written frames of a partial slice; then the client leaves the turn.
    fn closed(&mut self, reason: CloseReason, pending: &PendingWrites<F::Tally>) {
        let partial = tally_partial::<F>(pending.partial());
        self.counters.record_sent(&partial);
        if let Some(attendance) = self.attendance.take()
            && reason == CloseReason::Draining
        {
            attendance.leave_quietly();
        }
    }
}
