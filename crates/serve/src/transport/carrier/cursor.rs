//! A client's place in one session: first the store, in pages, then the ring.
//!
//! ```text
//!   store ──▶ pages of events ──▶ Selection ──▶ frames made for this client ──┐
//!   ring  ──▶ runs of frames, made once a track ──▶ Selection ──▶ slices ─────┴─▶ PendingWrites
//! ```
//!
//! Either way a client that stops reading holds the frames of one page or one read of the ring, both
//! bounded in bytes, or a single larger frame.
//!
//! [`FrameFormat`] turns one event into frame bytes, the same for every client; [`Selection`] says
//! which of them one client gets.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{EventFilter, EventHead, Position};
use turnwire_hub::{FrameRun, RingEntry, RingRead};
use turnwire_session::{CatchUp, LiveSession, ReplayError};

use super::pending::{FrameTally, PendingWrites};

/// Events taken from the ring at once: bounds what one client holds.
pub(crate) const RING_EVENTS_MAX: usize = 256;

/// Writes the frames of a wire: its projection in its [`Framing`](super::Framing).
pub(crate) trait FrameFormat: Copy + Send + 'static {
    type Tally: FrameTally;

    /// The track of every ring that keeps these frames.
    fn track(self) -> usize;

    /// Appends the frames of an event; returns the tag that the ring stores beside them.
    fn write(self, entry: &RingEntry, out: &mut Vec<u8>) -> u64;

    /// Queues what [`FrameFormat::write`] gave for adjacent events. A wire that puts several events
    /// into one frame does so here.
    fn push(self, frames: Bytes, tally: Self::Tally, pending: &mut PendingWrites<Self::Tally>) {
        pending.push(frames, tally);
    }
}

/// How the delivery of a page of stored events continues at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageStep {
    Next,
    /// The cursor stops behind the event.
    StopAfter,
    /// The cursor stops before the event, and none of its frames was written.
    StopBefore,
}

/// Selects the frames of a session that one client gets.
pub(crate) trait Selection: Send {
    type Format: FrameFormat;

    /// True if events that are in the ring when the cursor enters it count as history, for which the
    /// lag bound does not apply.
    const RING_IS_HISTORY: bool;

    fn format(&self) -> Self::Format;

    /// The filter that stored events may be selected with before [`Selection::write_stored`] sees
    /// them; `None` if it must see every event.
    fn stored_filter(&self) -> Option<&EventFilter> {
        None
    }

    /// True if a client whose next events have left the ring by its bounds is served from the store.
    /// Otherwise it is too slow.
    fn may_leave_ring(&self) -> bool {
        false
    }

    /// Hands the frames of `run` that the client gets to `put`. Returns how many events of the run the
    /// cursor passes; it stops there if they are not all.
    fn take(
        &mut self,
        run: FrameRun<'_>,
        put: impl FnMut(Bytes, <Self::Format as FrameFormat>::Tally),
    ) -> usize;

    /// Appends the frames of a stored event and counts them.
    fn write_stored(
        &mut self,
        head: &EventHead,
        json: &Bytes,
        out: &mut Vec<u8>,
        tally: &mut <Self::Format as FrameFormat>::Tally,
    ) -> Result<PageStep, ReplayError>;

    /// Starts a [`CatchUp`] with all events after `at`.
    fn replay(
        &self,
        live: &Arc<LiveSession>,
        at: Position,
    ) -> impl Future<Output = Result<CatchUp, ReplayError>> + Send;
}

type TallyOf<S> = <<S as Selection>::Format as FrameFormat>::Tally;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// The cursor moved; there may be more.
    Progress,
    Idle,
    /// The ring dropped events that the client has not been given.
    Overrun,
    /// A frame is too large to be sent; this many frames are lost with it.
    TooLarge(u64),
}

/// The events that the sessions of a connection have for its client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    /// A number that grows with every event.
    pub(crate) newest: u64,
    /// True if [`Wire::fill`](super::Wire::fill) would queue frames or move a cursor.
    pub(crate) has_more: bool,
    /// Events in the rings that the client has not been given, also those that its filter hides.
    pub(crate) lag: u64,
    /// False while the client catches up, and once it has all frames of the stream.
    pub(crate) is_bounded: bool,
    /// True if the session was deleted or is damaged.
    pub(crate) has_ended: bool,
}

/// What a frame usually adds to the JSON of its event: room for it is reserved once.
const FRAME_HEAD_BYTES: usize = 256;

/// The position of a client in one session.
pub(crate) struct SessionCursor {
    /// Every event up to here was passed; a valid cursor of the session wire.
    pub(crate) at: Position,
    /// The number of the next event in the ring.
    index: u64,
    /// The replay on the way to the ring.
    replay: Option<CatchUp>,
    /// Events of the replay that are read and not passed.
    page: VecDeque<(EventHead, Bytes)>,
    /// The ring index from which the client is live.
    live_from: u64,
    is_live: bool,
    /// The cursor waited for a worker: if the ring overtook it, the client was not too slow.
    has_paused: bool,
    counted: CountedLag,
}

/// The events after a cursor that pass the filter of its client, as far as they were counted.
#[derive(Clone, Copy, Debug, Default)]
struct CountedLag {
    /// The ring index of the cursor when the count began.
    from: u64,
    /// The ring index behind the last event that was looked at.
    to: u64,
    /// The position of that event.
    at: Option<Position>,
    passing: u64,
}

impl SessionCursor {
    /// A cursor at `at`, which is just before `index` in the ring.
    pub(crate) fn in_ring(at: Position, index: u64) -> Self {
        Self {
            at,
            index,
            replay: None,
            page: VecDeque::new(),
            live_from: 0,
            is_live: false,
            has_paused: false,
            counted: CountedLag::default(),
        }
    }

    /// A cursor at `at` that begins with a [`CatchUp`].
    pub(crate) fn in_replay(at: Position, replay: CatchUp) -> Self {
        Self {
            replay: Some(replay),
            ..Self::in_ring(at, 0)
        }
    }

    /// A cursor at `at`, in the ring if it holds all events after `at`.
    pub(crate) async fn open<S: Selection>(
        live: &Arc<LiveSession>,
        at: Position,
        selection: &S,
    ) -> Result<Self, ReplayError> {
        match live.ring.cursor_after(at) {
            Some(index) => {
                let mut cursor = Self::in_ring(at, index);
                cursor.enter_ring::<S>(live);
                Ok(cursor)
            }
            None => {
                let replay = Box::pin(selection.replay(live, at)).await?;
                Ok(Self::in_replay(at, replay))
            }
        }
    }

    /// True while the client receives events from before it connected.
    pub(crate) fn is_catching_up(&self) -> bool {
        self.replay.is_some() || !self.is_live
    }

    /// True while the store is read.
    pub(crate) fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// Events in the ring that the client has not been given.
    pub(crate) fn lag(&self, live: &LiveSession) -> u64 {
        if self.replay.is_some() {
            0
        } else {
            live.ring.end().saturating_sub(self.index)
        }
    }

    /// Events in the ring that the client has not been given and that pass the filter of `selection`.
    /// Looks at each event once while the cursor does not move. Of events that have left the ring
    /// before they were looked at, as many count as may have passed.
    pub(crate) fn passing_lag<S: Selection>(&mut self, live: &LiveSession, selection: &S) -> u64 {
        if self.replay.is_some() {
            return 0;
        }
        if self.counted.from != self.index || self.counted.to < self.index {
            self.reset_count();
        }
        let full = EventFilter::full();
        let filter = selection.stored_filter().unwrap_or(&full);
        let at = self.counted.at.unwrap_or(self.at);
        let count = live.ring.count_passing(self.counted.to, at, filter);
        // A filter that hides deltas lets pass at most the start or the end of a message beside each
        // persisted event.
        let left = match selection.may_leave_ring() {
            true => count.left.min(2 * count.left_persisted + 1),
            false => count.left,
        };
        self.counted.passing += left + count.passing;
        (self.counted.to, self.counted.at) = (count.end, Some(count.at));
        self.counted.passing
    }

    /// Makes the next [`passing_lag`](Self::passing_lag) count from the cursor on, for a new filter.
    pub(crate) fn reset_count(&mut self) {
        self.counted = CountedLag {
            from: self.index,
            to: self.index,
            at: None,
            passing: 0,
        };
    }

    /// True if events that the client has not been given have left the ring.
    pub(crate) fn has_fallen_behind(&self, live: &LiveSession) -> bool {
        self.replay.is_none() && self.index < live.ring.first()
    }

    /// True if [`SessionCursor::fill`] would move the cursor.
    pub(crate) fn has_more(&self, live: &LiveSession) -> bool {
        self.replay.is_some() || self.lag(live) > 0
    }

    /// The [`Backlog`] of `live` for the client.
    pub(crate) fn backlog(&self, live: &LiveSession) -> Backlog {
        Backlog {
            newest: live.ring.end(),
            has_more: self.has_more(live),
            lag: self.lag(live),
            is_bounded: !self.is_catching_up(),
            has_ended: live.ring.is_closed(),
        }
    }

    /// The size of the events that are read and not passed.
    pub(crate) fn page_bytes(&self) -> usize {
        self.page.iter().map(|(_, json)| json.len()).sum()
    }

    /// Drops the events that are read and not passed; they are read again.
    pub(crate) fn release_page(&mut self) {
        if let (false, Some(replay)) = (self.page.is_empty(), &mut self.replay) {
            self.page = VecDeque::new();
            replay.rewind(self.at);
        }
    }

    /// Notes that the cursor waits: the ring may overtake it before its next [`fill`](Self::fill).
    pub(crate) fn pause(&mut self) {
        self.has_paused = true;
    }

    /// Starts a new replay from the store after the cursor; drops the current page.
    pub(crate) async fn restart<S: Selection>(
        &mut self,
        live: &Arc<LiveSession>,
        selection: &S,
    ) -> Result<(), ReplayError> {
        self.replay = Some(Box::pin(selection.replay(live, self.at)).await?);
        self.page.clear();
        Ok(())
    }

    fn enter_ring<S: Selection>(&mut self, live: &LiveSession) {
        if let Some(replay) = self.replay.take() {
            (self.at, self.index) = (replay.upto, replay.cursor);
        }
        if S::RING_IS_HISTORY {
            self.live_from = live.ring.end();
        }
    }

    /// Queues the next frames.
    pub(crate) async fn fill<S: Selection>(
        &mut self,
        live: &Arc<LiveSession>,
        selection: &mut S,
        pending: &mut PendingWrites<TallyOf<S>>,
    ) -> Result<Fill, ReplayError> {
        if let (true, Some(replay)) = (self.page.is_empty(), &mut self.replay) {
            match Box::pin(replay.next(selection.stored_filter())).await? {
                // A page without a match still moves the cursor over what was skipped.
                Some(page) if page.is_empty() => self.at = replay.position(),
                Some(page) => {
                    self.page = page.into();
                    live.charge_replay(self.page_bytes());
                }
                None => self.enter_ring::<S>(live),
            }
            if self.page.is_empty() {
                return Ok(Fill::Progress);
            }
        }
        if !self.page.is_empty() {
            return self.fill_from_page(selection, pending);
        }
        let (format, mut lost) = (selection.format(), None);
        let read = self.read_ring(live, selection, |frames, tally| {
            if tally.is_too_large() || lost.is_some() {
                *lost.get_or_insert(0) += tally.frames();
            } else {
                format.push(frames, tally, pending);
            }
        });
        match read {
            RingRead::Advanced(_) => Ok(lost.map_or(Fill::Progress, Fill::TooLarge)),
            RingRead::Empty => {
                (self.is_live, self.has_paused) = (true, false);
                Ok(Fill::Idle)
            }
            RingRead::Behind if self.is_live && !self.has_paused && !selection.may_leave_ring() => {
                Ok(Fill::Overrun)
            }
            // Not the client's fault: its filter hides most of what overtook it, a burst did, or the
            // server has evicted the event.
            RingRead::Behind | RingRead::Evicted => {
                self.restart(live, selection).await?;
                Ok(Fill::Progress)
            }
        }
    }

    fn fill_from_page<S: Selection>(
        &mut self,
        selection: &mut S,
        pending: &mut PendingWrites<TallyOf<S>>,
    ) -> Result<Fill, ReplayError> {
        let size = self.page_bytes() + self.page.len() * FRAME_HEAD_BYTES;
        let (mut frames, mut tally) = (Vec::with_capacity(size), TallyOf::<S>::default());
        while let Some((head, json)) = self.page.front() {
            let step = selection.write_stored(head, json, &mut frames, &mut tally)?;
            if step == PageStep::StopBefore {
                break;
            }
            self.at = head.position;
            self.page.pop_front();
            if step == PageStep::StopAfter {
                break;
            }
            if let (true, Some(replay)) = (self.page.is_empty(), &self.replay) {
                self.at = replay.position();
            }
        }
        if tally.is_too_large() {
            return Ok(Fill::TooLarge(tally.frames()));
        }
        // The frames may wait for a slow socket: without the spare capacity of their growth.
        frames.shrink_to_fit();
        selection.format().push(frames.into(), tally, pending);
        Ok(Fill::Progress)
    }

    fn read_ring<S: Selection>(
        &mut self,
        live: &LiveSession,
        selection: &mut S,
        mut put: impl FnMut(Bytes, TallyOf<S>),
    ) -> RingRead {
        let format = selection.format();
        let (from, mut has_stopped) = (self.index, false);
        let mut bytes_left = live.pending_bytes_max();
        let mut take = |run: FrameRun<'_>| {
            // The first event is taken whatever the size of its frames.
            let at_least = usize::from(self.index == from);
            let fitting = run.first(run.fitting(bytes_left).max(at_least));
            if has_stopped || fitting.is_empty() {
                has_stopped = true;
                return;
            }
            bytes_left = bytes_left.saturating_sub(fitting.bytes());
            let passed = selection.take(fitting, &mut put);
            has_stopped = passed < run.len();
            if let Some(last) = run.first(passed).heads().last() {
                self.at = last.position;
                self.index += passed as u64;
            }
        };
        let write = |entry: &RingEntry, out: &mut Vec<u8>| format.write(entry, out);
        let track = format.track();
        let read = live
            .ring
            .read(track, from, RING_EVENTS_MAX, &write, &mut take);
        if let RingRead::Advanced(_) = read {
            self.is_live |= self.index >= self.live_from;
            self.has_paused = false;
        }
        read
    }

    /// Counts the frames that the ring still has for the client, until `is_complete`.
    pub(crate) fn remaining<S: Selection>(
        &mut self,
        live: &LiveSession,
        selection: &mut S,
        is_complete: impl Fn(&S) -> bool,
    ) -> u64 {
        let mut frames = 0;
        self.index = self.index.max(live.ring.first());
        while !is_complete(selection)
            && let RingRead::Advanced(_) =
                self.read_ring(live, selection, |_, tally| frames += tally.frames())
        {}
        frames
    }
}

/// Counts the frames after `at`, to the end of the log or of the selection, from the store: what a
/// client misses whose next events have left the ring.
pub(crate) async fn count_stored<S: Selection>(
    live: &Arc<LiveSession>,
    at: Position,
    selection: &mut S,
) -> Result<u64, ReplayError> {
    let filter = selection.stored_filter().cloned();
    let filter = filter.unwrap_or_else(EventFilter::full);
    let replay = live.catch_up_from(at, &filter, FinishedReplay::EachDelta, u64::MAX);
    let mut replay = Box::pin(replay).await?;
    let (mut frames, mut out) = (0, Vec::new());
    while let Some(page) = Box::pin(replay.next(selection.stored_filter())).await? {
        for (head, json) in page {
            out.clear();
            let mut tally = TallyOf::<S>::default();
            let step = selection.write_stored(&head, &json, &mut out, &mut tally)?;
            frames += tally.frames();
            if step != PageStep::Next {
                return Ok(frames);
            }
        }
    }
    Ok(frames)
}
