//! The frames of one turn, from the client's cursor to the turn's end.

use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{Event, EventFilter, EventHead, Position, TurnId};
use turnwire_hub::FrameRun;
use turnwire_session::{CatchUp, Error, LiveSession, ReplayError};
use turnwire_wire::pc3::FrameCursor;

use super::super::carrier::{PageStep, Selection};
use super::TurnFormat;
use super::tally::kinds_in_tag;

/// The [`Selection`] of a turn stream.
#[derive(Clone)]
pub(crate) struct TurnSelection<F> {
    pub(super) turn: TurnId,
    pub(super) format: F,
    /// The client's cursor, if the client may have some frames of the first event; else `None`.
    pub(super) client_cursor: Option<FrameCursor>,
    /// The turn's last frame was selected.
    pub(super) is_complete: bool,
}

impl<F: TurnFormat> Selection for TurnSelection<F> {
    type Format = F;
    const RING_IS_HISTORY: bool = true;

    fn format(&self) -> F {
        self.format
    }

    /// A client whose socket is blocked is closed by its lag before this. One that reads catches up from
    /// the store if a burst has overtaken it.
    fn may_leave_ring(&self) -> bool {
        true
    }

    fn take(&mut self, run: FrameRun<'_>, mut put: impl FnMut(Bytes, F::Tally)) -> usize {
        if self.is_complete {
            return run.len();
        }
        let client_cursor = &mut self.client_cursor;
        self.is_complete = run.select_turn(self.turn, |frames, heads, tags| {
            // The client can have frames of the first event only.
            let first = client_cursor.take().zip(heads.first()).zip(tags.first());
            let skip = first
                .filter(|((cursor, head), _)| cursor.position == head.position)
                .and_then(|((cursor, _), tag)| Some((cursor.frame?, kinds_in_tag(*tag).count())))
                .map_or(0, |(frame, count)| (usize::from(frame) + 1).min(count));
            let mut tally = F::Tally::default();
            let (partial, complete) = tags.split_at(usize::from(skip > 0));
            partial.iter().for_each(|tag| tally.add(*tag, skip));
            tally.add_all(complete);
            put(frames.slice(F::skip_frames(&frames, skip)..), tally);
        });
        run.len()
    }

    fn write_stored(
        &mut self,
        head: &EventHead,
        json: &Bytes,
        out: &mut Vec<u8>,
        tally: &mut F::Tally,
    ) -> Result<PageStep, ReplayError> {
        if head.turn != Some(self.turn) {
            return Ok(PageStep::Next);
        }
        let event = Event::read(json).map_err(|error| {
            tracing::error!(at = %head.position, %error, "cannot parse a stored event");
            ReplayError::Session(Error::Internal)
        })?;
        let client_cursor = self.client_cursor.as_ref();
        tally.add(self.format.write_event(&event, client_cursor, out), 0);
        self.is_complete = head.kind.is_terminal();
        Ok(if self.is_complete {
            PageStep::StopAfter
        } else {
            PageStep::Next
        })
    }

    async fn replay(&self, live: &Arc<LiveSession>, at: Position) -> Result<CatchUp, ReplayError> {
        let all = EventFilter::full();
        live.catch_up_from(at, &all, FinishedReplay::Deltas, u64::MAX)
            .await
    }
}
