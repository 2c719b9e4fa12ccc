//! The session wire as WebSocket text frames: an event's stored bytes between two constants, for
//! the events that pass an [`EventFilter`].

use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{EventFilter, EventHead, EventType, Position};
use turnwire_hub::{FrameRun, RingEntry};
use turnwire_session::{CatchUp, LiveSession, ReplayError};
use turnwire_wire::session::server::{EVENT_PREFIX, EVENT_SUFFIX};
use turnwire_wire::session::write_event;

use super::super::carrier::websocket::header::text_header;
use super::super::carrier::{EventCount, FrameFormat, PageStep, PendingWrites, Selection};

/// The [`PendingWrites`] of the session wire.
pub(super) type EventWrites = PendingWrites<EventCount>;

/// The [`FrameFormat`] of the session wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventFormat;

impl EventFormat {
    /// Appends the frame of an event with these bytes.
    pub(super) fn write_json(self, json: &[u8], out: &mut Vec<u8>) {
        text_header(EVENT_PREFIX.len() + json.len() + EVENT_SUFFIX.len(), out);
        write_event(json, out);
    }
}

impl FrameFormat for EventFormat {
    type Tally = EventCount;

    fn track(self) -> usize {
        0
    }

    fn write(self, entry: &RingEntry, out: &mut Vec<u8>) -> u64 {
        self.write_json(&entry.bytes, out);
        0
    }
}

/// The [`Selection`] of the events that pass a client's filter.
pub(super) struct FilterSelection<'a>(pub(super) &'a EventFilter);

impl Selection for FilterSelection<'_> {
    type Format = EventFormat;
    const RING_IS_HISTORY: bool = false;

    fn format(&self) -> EventFormat {
        EventFormat
    }

    fn stored_filter(&self) -> Option<&EventFilter> {
        Some(self.0)
    }

    /// A replay joins deltas, so a slow client that gets deltas must not be served from the store. The
    /// start and the end of a message are replayed as they were sent.
    fn may_leave_ring(&self) -> bool {
        let is_replayed_as_sent = |kind: EventType| {
            let ends = [EventType::MessageStart, EventType::MessageComplete];
            kind.is_persisted() || ends.contains(&kind)
        };
        self.0.types().iter().all(is_replayed_as_sent)
    }

    fn take(&mut self, run: FrameRun<'_>, mut put: impl FnMut(Bytes, EventCount)) -> usize {
        run.select(self.0, |frames, events| put(frames, EventCount(events)));
        run.len()
    }

    fn write_stored(
        &mut self,
        head: &EventHead,
        json: &Bytes,
        out: &mut Vec<u8>,
        tally: &mut EventCount,
    ) -> Result<PageStep, ReplayError> {
        if self.0.matches(head) {
            EventFormat.write_json(json, out);
            tally.0 += 1;
        }
        Ok(PageStep::Next)
    }

    async fn replay(&self, live: &Arc<LiveSession>, at: Position) -> Result<CatchUp, ReplayError> {
        live.catch_up(at, self.0, FinishedReplay::Ends, u64::MAX)
            .await
    }
}
