//! Where the frames of one turn come from: the past from the store, then the ring, up to the
//! turn's end.

use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::fold::replay::Missed;
use turnwire_event::{Event, Filter, Head, Position, TurnId};
use turnwire_hub::{Entry, Read, Run};
use turnwire_session::{CatchUp, Error, LiveSession, ReplayError};
use turnwire_wire::pc3::{Cursor, Version, project, project_after};

use super::due::{Due, Tally, frames_of, word};

/// Events taken from the ring at once: bounds what one viewer holds.
const TAKE: usize = 256;

/// What a fill found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// Something may be due now.
    Some,
    /// Nothing new.
    Nothing,
    /// The ring has gone on without the client.
    Behind,
    /// A frame is too large to be sent; with those after it so many are lost.
    TooLarge(u64),
}

/// The frames of one turn, from a cursor on.
pub(super) struct Feed {
    turn: TurnId,
    version: Version,
    /// What the client has of the event its cursor names; none once that is passed.
    seen: Option<Cursor>,
    /// Everything up to here was looked at.
    at: Position,
    cursor: u64,
    /// On the way to the ring; none when live.
    catch_up: Option<CatchUp>,
    /// Where the ring ended when it was entered: what is before is the past, told from memory.
    goal: u64,
    /// Whether that was reached: from then on falling off the ring is the end.
    live: bool,
    /// Whether the turn's end was given.
    ended: bool,
}

/// The track of a version in every ring; the session wire has the first.
const fn track(version: Version) -> usize {
    match version {
        Version::V05 => 1,
        Version::V04 => 2,
    }
}

/// Makes the frames of a ring's entry.
fn frames(entry: &Entry, version: Version, out: &mut Vec<u8>) -> u64 {
    let begin = out.len();
    match Event::read(&entry.bytes) {
        Ok(event) => word(project(&event, version, out), out.len() - begin),
        Err(error) => {
            tracing::error!(at = %entry.head.position, %error, "an event cannot be read");
            0
        }
    }
}

/// Where the first `skip` blocks of `frames` end.
fn after_blocks(frames: &[u8], skip: usize) -> usize {
    let mut ends = frames
        .windows(2)
        .enumerate()
        .filter(|(_, two)| *two == b"\n\n");
    match skip.checked_sub(1).map(|last| ends.nth(last)) {
        None => 0,
        Some(Some((at, _))) => at + 2,
        Some(None) => frames.len(),
    }
}

impl Feed {
    /// The frames of `turn` after `cursor`, read from `since` on. From memory if all of it is
    /// there.
    pub(super) async fn open(
        live: &Arc<LiveSession>,
        turn: TurnId,
        version: Version,
        since: Position,
        seen: Option<Cursor>,
    ) -> Result<Self, ReplayError> {
        let mut feed = Self {
            turn,
            version,
            seen,
            at: since,
            cursor: 0,
            catch_up: None,
            goal: 0,
            live: false,
            ended: false,
        };
        match live.ring.seek(since) {
            Some(cursor) => (feed.cursor, feed.goal) = (cursor, live.ring.end()),
            None => feed.catch_up(live).await?,
        }
        Ok(feed)
    }

    async fn catch_up(&mut self, live: &Arc<LiveSession>) -> Result<(), ReplayError> {
        let all = Filter::full();
        let past = live.catch_up_from(self.at, &all, Missed::Deltas, u64::MAX);
        self.catch_up = Some(Box::pin(past).await?);
        Ok(())
    }

    /// The version it speaks.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Whether the turn's end was given.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether the client is still being told the past.
    pub(super) fn is_catching_up(&self) -> bool {
        self.catch_up.is_some() || !self.live
    }

    /// Where in the ring it goes on; none while it is told the past.
    pub(super) fn cursor(&self) -> Option<u64> {
        self.catch_up.is_none().then_some(self.cursor)
    }

    /// How many events the ring has that this client has not been given.
    pub(super) fn behind(&self, live: &LiveSession) -> u64 {
        if self.catch_up.is_some() || self.ended {
            0
        } else {
            live.ring.end().saturating_sub(self.cursor)
        }
    }

    /// Puts what is due next into `due`.
    pub(super) async fn fill(
        &mut self,
        live: &Arc<LiveSession>,
        due: &mut Due,
    ) -> Result<Filled, ReplayError> {
        if self.ended {
            return Ok(Filled::Nothing);
        }
        if let Some(catch_up) = &mut self.catch_up {
            return match Box::pin(catch_up.next()).await? {
                Some(chunk) => self.tell(&chunk, due),
                None => {
                    (self.at, self.cursor) = (catch_up.upto, catch_up.cursor);
                    (self.goal, self.catch_up) = (live.ring.end(), None);
                    Ok(Filled::Some)
                }
            };
        }
        let mut lost = None;
        let read = self.read(live, TAKE, |bytes, tally| {
            if tally.is_too_large() || lost.is_some() {
                *lost.get_or_insert(0) += tally.frames();
            } else {
                due.push(bytes, tally);
            }
        });
        match read {
            Read::Upto(_) => Ok(lost.map_or(Filled::Some, |lost| self.too_large(lost))),
            Read::Empty => {
                self.live = true;
                Ok(Filled::Nothing)
            }
            Read::Behind if self.live => Ok(Filled::Behind),
            // The ring moved on while the past was told: tell some more of it.
            Read::Behind => {
                self.catch_up(live).await?;
                Ok(Filled::Some)
            }
        }
    }

    /// Projects a piece of the past.
    fn tell(&mut self, chunk: &[(Head, Bytes)], due: &mut Due) -> Result<Filled, ReplayError> {
        let (mut frames, mut tally) = (Vec::new(), Tally::default());
        for (head, json) in chunk {
            self.at = head.position;
            if head.turn != Some(self.turn) {
                continue;
            }
            let event = Event::read(json).map_err(|error| {
                tracing::error!(at = %head.position, %error, "an event cannot be read");
                ReplayError::Session(Error::Internal)
            })?;
            let begin = frames.len();
            let marks = match &self.seen {
                Some(seen) => project_after(&event, self.version, seen, &mut frames),
                None => project(&event, self.version, &mut frames),
            };
            tally.add(word(marks, frames.len() - begin), 0);
            if head.kind.is_terminal() {
                self.ended = true;
                break;
            }
        }
        if tally.is_too_large() {
            return Ok(self.too_large(tally.frames()));
        }
        due.push(frames.into(), tally);
        Ok(Filled::Some)
    }

    fn too_large(&self, frames: u64) -> Filled {
        tracing::error!(turn = %self.turn, "a frame is above 16 MiB: its stream ends without it");
        Filled::TooLarge(frames)
    }

    /// Reads on in the ring.
    fn read(
        &mut self,
        live: &LiveSession,
        events_max: usize,
        mut put: impl FnMut(Bytes, Tally),
    ) -> Read {
        let (turn, version) = (self.turn, self.version);
        let (mut at, mut ended, mut seen) = (self.at, self.ended, self.seen);
        let mut take = |run: Run<'_>| {
            if ended {
                return;
            }
            ended = run.of_turn(turn, |bytes, heads, words| {
                // Only the first event can be one of which the client has some frames, and no more
                // than it gives.
                let known = seen.take().zip(heads.first()).zip(words.first());
                let skip = known
                    .filter(|((seen, first), _)| seen.position == first.position)
                    .and_then(|((seen, _), word)| Some((seen.frame?, frames_of(*word))))
                    .map_or(0, |(frame, all)| (usize::from(frame) + 1).min(all));
                let mut tally = Tally::default();
                let partly = usize::from(skip > 0 && !words.is_empty());
                words[..partly]
                    .iter()
                    .for_each(|word| tally.add(*word, skip));
                tally.add_all(&words[partly..]);
                put(bytes.slice(after_blocks(&bytes, skip)..), tally);
            });
            if let Some(last) = run.heads().last() {
                at = last.position;
            }
        };
        let project = |entry: &Entry, out: &mut Vec<u8>| frames(entry, version, out);
        let read = live
            .ring
            .read(track(version), self.cursor, events_max, &project, &mut take);
        if let Read::Upto(cursor) = read {
            (self.cursor, self.at) = (cursor, at);
            (self.ended, self.seen) = (ended, seen);
            self.live |= cursor >= self.goal;
        }
        read
    }

    /// How many frames the ring has that this client will not be given.
    pub(super) fn left(&mut self, live: &LiveSession) -> u64 {
        if self.catch_up.is_some() || self.ended {
            return 0;
        }
        let mut frames = 0;
        self.cursor = self.cursor.max(live.ring.first());
        while let Read::Upto(_) = self.read(live, TAKE, |_, tally| frames += tally.frames()) {
            if self.ended {
                break;
            }
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_skipped_whole() {
        let frames = b"id: a-0\ndata: 1\n\nid: a-1\ndata: 2\n\ndata: [DONE]\n\n";
        assert_eq!(after_blocks(frames, 0), 0);
        assert!(frames[after_blocks(frames, 1)..].starts_with(b"id: a-1\n"));
        assert!(frames[after_blocks(frames, 2)..].starts_with(b"data: [DONE]"));
        for beyond in [3, 4, 10] {
            assert_eq!(after_blocks(frames, beyond), frames.len());
        }
    }
}
