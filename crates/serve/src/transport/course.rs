//! How one session's events are told where its workers' come along: up to the next event that
//! says that a worker begins or has ended, so that a worker's own events stand between the two.
//!
//! ```text
//!   parent  … delegate.started(W) │ …… │ delegate.completed(W) …
//!                                 │    │ told when W is told up to its tail
//!   W                             └ session.created … turn.completed
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::{EventType, Filter, Head, Position, SessionId};
use turnwire_hub::{Read, Run};
use turnwire_session::{LiveSession, ReplayError};

use super::frame;
use super::outbound::Outbound;
use super::place::{Place, TAKE, TRACK};

/// What stands in the way of a session's next events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// This worker must be told first,
    pub(super) worker: SessionId,
    /// up to here in its own stream;
    pub(super) upto: Position,
    /// then this event, its end, may be told.
    pub(super) end: Position,
}

/// The telling of one session.
pub(super) struct Course {
    /// Read from the store and not told yet.
    held: VecDeque<(Head, Bytes)>,
    pub(super) wait: Option<Wait>,
    /// Whether it stood still for a worker since it last read the ring, which may have gone on
    /// without it: that is not the client's doing.
    stood: bool,
    /// The end of a worker that may be told, as the worker is.
    passed: Option<Position>,
    /// Where its open workers were looked up: one that has not shown up by then began before the
    /// place this telling started from.
    pub(super) looked: Position,
}

/// How far a telling got.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Something may be due now.
    Some,
    /// Nothing new.
    Nothing,
    /// The ring has gone on without the client.
    Behind,
    /// Up to and with the start of this worker.
    Began(SessionId),
    /// Up to just before the end of this worker, which stands here.
    Ending(SessionId, Position),
}

/// What an event says of a worker.
enum Word {
    Began(SessionId),
    Ended(SessionId),
}

fn word(head: &Head) -> Option<Word> {
    let say = match head.kind {
        EventType::DelegateStarted => Word::Began,
        EventType::DelegateCompleted | EventType::DelegateFailed => Word::Ended,
        _ => return None,
    };
    Some(say(head.actor.name()?.parse().ok()?))
}

impl Course {
    pub(super) fn new(looked: Position) -> Self {
        Self {
            held: VecDeque::new(),
            wait: None,
            stood: false,
            passed: None,
            looked,
        }
    }

    /// Whether something was read from the store that is not told yet.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Stands still until a worker is told.
    pub(super) fn stand(&mut self, wait: Wait) {
        (self.wait, self.stood) = (Some(wait), true);
    }

    /// Lets the end of a worker pass.
    pub(super) fn pass(&mut self, end: Position) {
        (self.wait, self.passed) = (None, Some(end));
    }

    /// Whether there is something to tell that nothing stands in the way of.
    pub(super) fn has_more(&self, place: &Place, live: &LiveSession) -> bool {
        let more = !self.held.is_empty() || place.catch_up.is_some() || place.behind(live) > 0;
        more && self.wait.is_none()
    }

    /// Whether `head` may not be told yet, as it ends this worker.
    fn stops(&self, word: Option<&Word>, head: &Head) -> Option<Told> {
        match word {
            Some(Word::Ended(worker)) if self.passed != Some(head.position) => {
                Some(Told::Ending(*worker, head.position))
            }
            _ => None,
        }
    }

    /// Puts what is due next into `out`, up to the next word about a worker.
    pub(super) async fn tell(
        &mut self,
        place: &mut Place,
        live: &Arc<LiveSession>,
        filter: &Filter,
        out: &mut Outbound,
    ) -> Result<Told, ReplayError> {
        if let (true, Some(catch_up)) = (self.held.is_empty(), &mut place.catch_up) {
            match Box::pin(catch_up.next()).await? {
                Some(chunk) => self.held = chunk.into(),
                None => place.arrive(),
            }
            if self.held.is_empty() {
                return Ok(Told::Some);
            }
        }
        if !self.held.is_empty() {
            return Ok(self.tell_held(place, filter, out));
        }
        let (told, read) = self.tell_ring(place, live, filter, out);
        match read {
            Read::Upto(_) => {
                (place.live, self.stood) = (true, false);
                Ok(told)
            }
            Read::Empty => {
                (place.live, self.stood) = (true, false);
                Ok(Told::Nothing)
            }
            Read::Behind if place.live && !self.stood => Ok(Told::Behind),
            Read::Behind => {
                place.again(live, filter).await?;
                Ok(Told::Some)
            }
        }
    }

    fn tell_held(&mut self, place: &mut Place, filter: &Filter, out: &mut Outbound) -> Told {
        let (mut frames, mut events) = (Vec::new(), 0);
        let mut told = Told::Some;
        while let Some((head, json)) = self.held.front() {
            let word = word(head);
            if let Some(stop) = self.stops(word.as_ref(), head) {
                told = stop;
                break;
            }
            if filter.matches(head) {
                frame::event(json, &mut frames);
                events += 1;
            }
            place.at = head.position;
            self.held.pop_front();
            if let Some(Word::Began(worker)) = word {
                told = Told::Began(worker);
                break;
            }
        }
        out.push(Bytes::from(frames), events);
        told
    }

    fn tell_ring(
        &self,
        place: &mut Place,
        live: &LiveSession,
        filter: &Filter,
        out: &mut Outbound,
    ) -> (Told, Read) {
        let cursor = place.cursor;
        let mut told = Told::Some;
        let mut take = |run: Run<'_>| {
            if told != Told::Some {
                return;
            }
            let mut upto = run.len();
            for (index, head) in run.heads().iter().enumerate() {
                let word = word(head);
                if let Some(stop) = self.stops(word.as_ref(), head) {
                    (told, upto) = (stop, index);
                    break;
                }
                if let Some(Word::Began(worker)) = word {
                    (told, upto) = (Told::Began(worker), index + 1);
                    break;
                }
            }
            let run = run.first(upto);
            if let Some(last) = run.heads().last() {
                place.at = last.position;
                place.cursor += run.len() as u64;
                run.select(filter, |bytes, events| out.push(bytes, events));
            }
        };
        let read = live
            .ring
            .read(TRACK, cursor, TAKE, &frame::project, &mut take);
        (told, read)
    }
}
