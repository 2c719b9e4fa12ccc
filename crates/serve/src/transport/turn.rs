//! Streams of one turn: from a client's cursor to the turn's end, then the stream is over. A wire
//! of this kind is a [`TurnFormat`]; everything else is here and in the [`Carrier`].

mod tally;
mod counters;
mod limits;
mod selection;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::time::Instant;
use turnwire_event::{Event, Position, Seq, Sub, TurnId};
use turnwire_session::StreamGuard;
use turnwire_session::{LiveSession, ReplayError};
use turnwire_wire::pc3::FrameCursor;

use super::Streams;
use super::carrier::Carrier;
use super::carrier::close::CloseReason;
use super::carrier::cursor::{Fill, FrameFormat, SessionCursor};
use super::carrier::framing::Framing;
use super::carrier::pending::{FrameTally, PendingWrites};
use super::carrier::wire::{Backlog, Limits, Wire};
use super::phase::ServerPhase;
use counters::TurnCounters;
use selection::TurnSelection;

pub(crate) use tally::{MarkTally, word};

pub use counters::CountersByVersion;
pub use limits::{StreamLimits, StreamPermit};
pub use tally::FrameMark;

/// One wire that streams turns: how its frames are written, skipped and counted.
pub(crate) trait TurnFormat: FrameFormat<Tally = MarkTally<Self::Mark>> + Sync {
    type Framing: Framing;
    type Mark: FrameMark;

    /// The name of the gauge of open streams.
    const OPEN_STREAMS: &'static str;

    /// Sent after silence, so that nothing on the way takes the connection for dead.
    const HEARTBEAT: &'static [u8];

    /// Appends the frames of `event` that a client at `client_cursor` lacks; returns their word.
    fn write_after(
        self,
        event: &Event,
        client_cursor: Option<&FrameCursor>,
        out: &mut Vec<u8>,
    ) -> u64;

    /// The offset in `frames` behind the first `skip` of them.
    fn skip_frames(frames: &[u8], skip: usize) -> usize;

    /// Appends the end of a stream whose turn cannot be delivered to its end; returns its word.
    fn write_lost(self, turn: TurnId, out: &mut Vec<u8>) -> u64;

    /// Counts the complete frames at the beginning of a slice that was written in part.
    fn tally_partial(partial: &[u8]) -> Self::Tally;
}

/// A client's request for the stream of a turn.
pub struct TurnRequest {
    /// The turn, whether it waits, runs or has ended.
    pub turn: TurnId,
    /// A position before every event of the turn.
    pub start: Position,
    /// The last frame that the client has.
    pub client_cursor: Option<FrameCursor>,
    /// When the request came that submitted the turn; none for a client that comes back.
    pub submitted_at: Option<Instant>,
    /// The client's attendance, if the submit has counted it already.
    pub attendance: Option<StreamGuard>,
    /// Counts the stream as open for its owner.
    pub permit: StreamPermit,
}

/// True if the session has no event at the cursor. Transient events are not looked up: those
/// after the last stored one do not survive a restart.
pub fn is_ahead(live: &LiveSession, cursor: &FrameCursor) -> bool {
    let tail = live.ring.with_state(|_, tail, _| tail);
    let at = cursor.position;
    at.epoch != tail.epoch || at.seq > tail.seq
}

/// The last position that there can be before the first event of a turn.
pub fn position_before(started: Position) -> Position {
    Position {
        epoch: started.epoch,
        seq: Seq(started.seq.0.saturating_sub(1)),
        sub: if started.seq.0 > 1 { Sub::LAST } else { Sub(0) },
    }
}

/// The stream of one turn to one client. Dropping it is leaving the turn.
pub(crate) struct TurnStream<F: TurnFormat> {
    streams: Arc<Streams>,
    live: Arc<LiveSession>,
    cursor: SessionCursor,
    selection: TurnSelection<F>,
    attendance: Option<StreamGuard>,
    counters: Arc<TurnCounters<F::Mark>>,
    /// Taken when the first frame is out.
    submitted_at: Option<Instant>,
    _permit: StreamPermit,
}

impl<F: TurnFormat> TurnStream<F> {
    /// Opens the stream of a turn, behind the client's cursor or from its start.
    pub(crate) async fn open(
        streams: Arc<Streams>,
        live: Arc<LiveSession>,
        format: F,
        counters: Arc<TurnCounters<F::Mark>>,
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
        let selection = TurnSelection::new(request.turn, format, client_cursor);
        Ok(Self {
            cursor: SessionCursor::open(&live, since, &selection).await?,
            selection,
            streams,
            live,
            attendance: Some(attendance),
            counters,
            submitted_at: request.submitted_at,
            _permit: request.permit,
        })
    }

    /// Counts the frames that a client which was too slow will not get (D-75).
    fn record_dropped(&mut self, pending: &PendingWrites<F::Tally>) {
        let partial = F::tally_partial(pending.partial());
        let mut dropped = pending.frames().saturating_sub(partial.frames());
        if !self.cursor.is_replaying() {
            let is_complete = |selection: &TurnSelection<F>| selection.is_complete;
            let selection = &mut self.selection;
            dropped += self.cursor.remaining(&self.live, selection, is_complete);
        }
        self.counters.record_dropped(dropped);
        tracing::info!(
            session = %self.live.id,
            frames = dropped,
            "a turn stream was too slow and was closed"
        );
    }

    /// Puts the stream on its socket; `head` leaves with the first frames.
    pub(crate) fn carrier(self, framing: F::Framing, head: Vec<u8>) -> Carrier<Self> {
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
        self.streams.options.limits()
    }

    fn backlog(&self) -> Backlog {
        let has_rest = !self.is_complete();
        Backlog {
            newest: self.live.ring.end(),
            has_more: has_rest && self.cursor.has_more(&self.live),
            lag: if has_rest {
                self.cursor.lag(&self.live)
            } else {
                0
            },
            is_bounded: has_rest && !self.cursor.is_catching_up(),
            has_ended: self.live.ring.is_closed(),
        }
    }

    /// The head alone may wait for the first frames.
    fn may_fill(&self, pending: &PendingWrites<F::Tally>) -> bool {
        pending.frames() == 0 && !self.is_complete()
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
                self.counters.record_dropped(frames);
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
        Some(self.streams.options.heartbeat)
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
            let (mut frame, mut tally) = (Vec::new(), F::Tally::default());
            let word = self
                .selection
                .format
                .write_lost(self.selection.turn, &mut frame);
            tally.add(word, 0);
            pending.push(frame.into(), tally);
        }
        if reason == CloseReason::TooSlow {
            self.record_dropped(pending);
        }
    }

    /// Counts the frames that are out of a slice written in part; then the client leaves the turn.
    fn closed(&mut self, reason: CloseReason, pending: &PendingWrites<F::Tally>) {
        let partial = F::tally_partial(pending.partial());
        self.counters.record_sent(&partial);
        if let Some(attendance) = self.attendance.take()
            && reason == CloseReason::Draining
        {
            attendance.leave_quietly();
        }
    }
}
