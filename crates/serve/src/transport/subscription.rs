//! What a connection has asked for and how far it has been served.

use bytes::Bytes;
use std::sync::Arc;
use turnwire_event::fold::replay::Missed;
use turnwire_event::{Filter, Position};
use turnwire_hub::{Read, Run};
use turnwire_session::watch::Watcher;
use turnwire_session::{CatchUp, Live, ReplayError};

use super::frame;
use super::outbound::Outbound;

/// The track of this wire in every ring.
const TRACK: usize = 0;
/// Events taken from the ring at once: bounds what one viewer holds.
const TAKE: usize = 256;

/// A live subscription.
pub(super) struct Subscription {
    pub(super) filter: Filter,
    /// Everything up to here was looked at; a legal cursor.
    pub(super) at: Position,
    cursor: u64,
    /// On the way to the ring; none when live.
    catch_up: Option<CatchUp>,
    /// Whether the ring was reached: from then on falling off it is the end.
    live: bool,
    pub(super) _watcher: Option<Watcher>,
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

impl Subscription {
    pub(super) fn new(
        filter: Filter,
        at: Position,
        cursor: u64,
        catch_up: Option<CatchUp>,
    ) -> Self {
        Self {
            filter,
            at,
            cursor,
            catch_up,
            live: false,
            _watcher: None,
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

    /// Whether something is to be told, of the past or from the ring.
    pub(super) fn is_behind(&self, live: &Live) -> bool {
        self.catch_up.is_some() || self.behind(live) > 0
    }

    /// How many events the ring has that this client has not been given.
    pub(super) fn behind(&self, live: &Live) -> u64 {
        if self.catch_up.is_some() {
            0
        } else {
            live.ring.end().saturating_sub(self.cursor)
        }
    }

    /// Puts what is due next into `out`, which is empty.
    pub(super) async fn fill(
        &mut self,
        live: &Arc<Live>,
        out: &mut Outbound,
    ) -> Result<Filled, ReplayError> {
        if let Some(catch_up) = &mut self.catch_up {
            let Some(chunk) = Box::pin(catch_up.next()).await? else {
                (self.at, self.cursor) = (catch_up.upto, catch_up.cursor);
                self.catch_up = None;
                return Ok(Filled::Some);
            };
            let mut frames = Vec::new();
            let mut events = 0;
            for (head, json) in &chunk {
                if self.filter.matches(head) {
                    frame::event(json, &mut frames);
                    events += 1;
                }
                self.at = head.position;
            }
            out.push(Bytes::from(frames), events);
            return Ok(Filled::Some);
        }
        let (filter, mut at) = (&self.filter, self.at);
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
            // The ring moved on while the past was told: tell some more of it.
            Read::Behind => {
                let again = live.catch_up(self.at, &self.filter, Missed::Ends, u64::MAX);
                self.catch_up = Some(Box::pin(again).await?);
                Ok(Filled::Some)
            }
        }
    }
}
