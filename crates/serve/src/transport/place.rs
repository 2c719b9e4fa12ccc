//! Where a connection stands in one session: on the way to its ring, or at a cursor in it.

use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::fold::replay::Missed;
use turnwire_event::{Filter, Position};
use turnwire_hub::{Read, Run};
use turnwire_session::{CatchUp, LiveSession, ReplayError};

use super::frame;
use super::outbound::Outbound;

/// The track of this wire in every ring.
pub(super) const TRACK: usize = 0;
/// Events taken from the ring at once: bounds what one viewer holds.
pub(super) const TAKE: usize = 256;

/// A place in one session's stream.
pub(super) struct Place {
    /// Everything up to here was looked at; a legal cursor.
    pub(super) at: Position,
    pub(super) cursor: u64,
    /// On the way to the ring; none when live.
    pub(super) catch_up: Option<CatchUp>,
    /// Whether the ring was reached: from then on falling off it is the end.
    pub(super) live: bool,
}

/// What a fill found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// Something may be due now.
    Some,
    /// Nothing new.
    Nothing,
    /// The ring has gone on without the client.
    Behind,
}

impl Place {
    /// At `at`, which is just before `cursor` in the ring.
    pub(super) fn new(at: Position, cursor: u64) -> Self {
        Self {
            at,
            cursor,
            catch_up: None,
            live: false,
        }
    }

    /// At `at`, with the past to be told before the ring is reached.
    pub(super) fn before(at: Position, catch_up: CatchUp) -> Self {
        Self {
            at,
            cursor: catch_up.cursor,
            catch_up: Some(catch_up),
            live: false,
        }
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
        if self.catch_up.is_some() {
            0
        } else {
            live.ring.end().saturating_sub(self.cursor)
        }
    }

    /// The past is told: the ring goes on.
    pub(super) fn arrive(&mut self) {
        if let Some(catch_up) = self.catch_up.take() {
            (self.at, self.cursor) = (catch_up.upto, catch_up.cursor);
        }
    }

    /// The ring moved on while the past was told: some more of it is told.
    pub(super) async fn again(
        &mut self,
        live: &Arc<LiveSession>,
        filter: &Filter,
    ) -> Result<(), ReplayError> {
        let again = live.catch_up(self.at, filter, Missed::Ends, u64::MAX);
        self.catch_up = Some(Box::pin(again).await?);
        Ok(())
    }

    /// Puts what is due next into `out`.
    pub(super) async fn fill(
        &mut self,
        live: &Arc<LiveSession>,
        filter: &Filter,
        out: &mut Outbound,
    ) -> Result<Filled, ReplayError> {
        if let Some(catch_up) = &mut self.catch_up {
            let Some(chunk) = Box::pin(catch_up.next()).await? else {
                self.arrive();
                return Ok(Filled::Some);
            };
            let mut frames = Vec::new();
            let mut events = 0;
            for (head, json) in &chunk {
                if filter.matches(head) {
                    frame::event(json, &mut frames);
                    events += 1;
                }
                self.at = head.position;
            }
            out.push(Bytes::from(frames), events);
            return Ok(Filled::Some);
        }
        let mut at = self.at;
        let mut take = |run: Run<'_>| {
            run.select(filter, |bytes, events| out.push(bytes, events));
            if let Some(last) = run.heads().last() {
                at = last.position;
            }
        };
        match live
            .ring
            .read(TRACK, self.cursor, TAKE, &frame::project, &mut take)
        {
            Read::Upto(cursor) => {
                (self.live, self.cursor, self.at) = (true, cursor, at);
                Ok(Filled::Some)
            }
            Read::Empty => {
                self.live = true;
                Ok(Filled::Nothing)
            }
            Read::Behind if self.live => Ok(Filled::Behind),
            Read::Behind => {
                self.again(live, filter).await?;
                Ok(Filled::Some)
            }
        }
    }
}
