//! Telling a client what it has missed: from the store, in chunks, up to a fixed position; from
//! there the ring goes on.
//!
//! ```text
//!   cursor ──── store: persisted events, finished messages ──── T │ ring ──▶ live
//!                       (200 or so a chunk, paced by the socket)  │ T, the ring's cursor and the
//!                       in flight at T: the transcript's copy ────┘ message in flight: one moment
//! ```

use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::fold::MessageFold;
use turnwire_event::fold::replay::{Missed, Stretch, events};
use turnwire_event::{Filter, Head, Position, Seq};
use turnwire_log::{ReadError, Store, View};

use crate::error::Error;
use crate::live::session::{LiveSession, ReplayCount};
use crate::live::transcript::{SessionSnapshot, Transcript};
use crate::store_read::blocking;

/// Persisted events read at first, so that a late reader has something soon, and at most, which
/// amortises a query and still shares two cores among many.
const CHUNK_FIRST: usize = 32;
const CHUNK_MAX: usize = 512;

/// Why a client cannot be told what it missed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The cursor is of another epoch, ahead of the tail, or behind retention.
    #[error("the cursor is outside of what is kept; take a snapshot")]
    Expired,
    /// There is too much.
    #[error("{0} events were missed, {1} can be replayed; take a snapshot")]
    TooLarge(u64, u64),
    /// The session is damaged or gone.
    #[error(transparent)]
    Session(#[from] Error),
}

/// A client on its way to the ring.
pub struct CatchUp {
    live: Arc<LiveSession>,
    /// Where it begins: everything after this is told.
    pub since: Position,
    /// Everything up to here has been told.
    at: Position,
    chunk: usize,
    in_flight: Option<Arc<MessageFold>>,
    missed: Missed,
    /// Where it leads: everything up to here is told when `next` gives nothing more.
    pub upto: Position,
    /// Where in the ring to go on when `next` gives nothing more.
    pub cursor: u64,
    /// How many persisted events pass the filter.
    pub count: u64,
}

impl LiveSession {
    /// Starts telling everything after a client's cursor, up to now, if not more than `max`
    /// persisted events pass the filter. A cursor of another epoch may have seen what is gone.
    pub async fn catch_up(
        self: &Arc<Self>,
        since: Position,
        filter: &Filter,
        missed: Missed,
        max: u64,
    ) -> Result<CatchUp, ReplayError> {
        if since.epoch != self.ring.look(|_, tail, _| tail.epoch) {
            return Err(ReplayError::Expired);
        }
        self.catch_up_from(since, filter, missed, max).await
    }

    /// As `catch_up`, from a place that the log itself names.
    pub async fn catch_up_from(
        self: &Arc<Self>,
        since: Position,
        filter: &Filter,
        missed: Missed,
        max: u64,
    ) -> Result<CatchUp, ReplayError> {
        let (in_flight, upto, cursor) = self
            .ring
            .look(|transcript, tail, cursor| (in_flight(transcript), tail, cursor));
        if since > upto {
            return Err(ReplayError::Expired);
        }
        let (live, filter) = (self.clone(), filter.clone());
        let leave = self.house.replays.acquire().await;
        let count = blocking(self.house.store(), move |store| {
            let tail = store.tail(live.id)?.ok_or(Error::SessionNotFound)?;
            if since.seq < tail.low {
                return Err(ReplayError::Expired);
            }
            let count = live.count(store, (since.seq, upto.seq), filter)?;
            if count > max {
                Err(ReplayError::TooLarge(count, max))
            } else {
                Ok(count)
            }
        })
        .await?;
        drop(leave);
        Ok(CatchUp {
            live: self.clone(),
            since,
            at: since,
            chunk: CHUNK_FIRST,
            upto,
            in_flight,
            missed,
            cursor,
            count,
        })
    }

    /// How many persisted events after `since` pass the filter.
    fn count(
        &self,
        store: &dyn Store,
        (since, upto): (Seq, Seq),
        filter: Filter,
    ) -> Result<u64, ReplayError> {
        // Every persisted type, from anyone, hidden or not: no need to look.
        if filter.passes_all(Filter::full().types()) && filter.includes_suppressed() {
            return Ok(upto.0 - since.0);
        }
        let known = self.counted.lock().clone();
        let known = known
            .filter(|known| known.since == since && known.upto <= upto && known.filter == filter);
        let (from, before) = known.map_or((since, 0), |known| (known.upto, known.count));
        let more = if from == upto {
            0
        } else {
            store.count(self.id, from, upto, &filter)?
        };
        let count = before + more;
        *self.counted.lock() = Some(ReplayCount {
            filter,
            since,
            upto,
            count,
        });
        Ok(count)
    }

    /// The session at this moment.
    pub async fn snapshot(self: &Arc<Self>, messages_max: usize) -> Result<SessionSnapshot, Error> {
        let (row, current_turn, in_flight, at, cursor) =
            self.ring.look(|transcript, tail, cursor| {
                (
                    transcript.row.clone(),
                    transcript.current_turn(),
                    transcript.in_flight(),
                    tail,
                    cursor,
                )
            });
        let id = self.id;
        let stored_max = messages_max.saturating_sub(usize::from(in_flight.is_some()));
        let stored = blocking(self.house.store(), move |store| {
            Ok::<_, Error>(store.messages(id, View::Clients, at, None, stored_max)?)
        })
        .await?;
        let messages = stored
            .into_iter()
            .map(|stored| stored.message)
            .chain(in_flight)
            .collect();
        Ok(SessionSnapshot {
            row,
            current_turn,
            messages,
            at,
            cursor,
        })
    }
}

impl CatchUp {
    /// The next chunk, in order; none when the ring goes on.
    pub async fn next(&mut self) -> Result<Option<Vec<(Head, Bytes)>>, ReplayError> {
        if self.at == self.upto {
            return Ok(None);
        }
        let (id, missed, limit) = (self.live.id, self.missed, self.chunk);
        let whole = Stretch {
            since: self.since,
            upto: self.upto,
            from: self.at,
            to: self.upto,
        };
        let in_flight = self.in_flight.clone();
        let leave = self.live.house.replays.acquire().await;
        let (chunk, at) = blocking(self.live.house.store(), move |store| {
            let told = chunk(store, id, whole, limit, in_flight.as_deref(), missed);
            Ok::<_, ReplayError>(told?)
        })
        .await?;
        drop(leave);
        self.at = at;
        self.chunk = (self.chunk * 4).min(CHUNK_MAX);
        Ok(Some(chunk))
    }
}

/// A piece of what is told, in order, and where it ends.
pub type ReplayChunk = (Vec<(Head, Bytes)>, Position);

/// The first piece of `left`, of at most `limit` persisted events: those that are stored, and of
/// messages what a client at `left.since` has missed. `in_flight` is the message that was not over
/// at `left.upto`.
pub fn chunk(
    store: &dyn Store,
    id: turnwire_event::SessionId,
    left: Stretch,
    limit: usize,
    in_flight: Option<&MessageFold>,
    missed: Missed,
) -> Result<ReplayChunk, ReadError> {
    let stored = store.events(id, left.from.seq, left.upto.seq, limit)?;
    let full = stored.len() == limit;
    let to = stored
        .last()
        .filter(|_| full)
        .map_or(left.upto, |last| last.head.position);
    let piece = Stretch { to, ..left };
    let mut out: Vec<(Head, Bytes)> = stored
        .into_iter()
        .map(|event| (event.head, event.bytes))
        .collect();
    let before = out.len();
    let folds = store.streamed(id, piece.from, piece.to)?;
    // The message that was in flight at `upto` may be whole by now: it is told as it was then.
    let folds = folds.iter().filter_map(MessageFold::from_stored);
    let folds = folds.filter(|fold| fold.completed.is_some_and(|(at, ..)| at <= left.upto));
    let mut tell = |fold: &MessageFold| {
        for event in events(fold, id, piece, missed) {
            out.push((event.head(), Bytes::from(event.to_bytes())));
        }
    };
    folds.for_each(|fold| tell(&fold));
    in_flight.into_iter().for_each(&mut tell);
    if out.len() > before {
        out.sort_by_key(|(head, _)| head.position);
    }
    Ok((out, to))
}

/// The message in flight, as it is now.
fn in_flight(transcript: &Transcript) -> Option<Arc<MessageFold>> {
    transcript.open.as_ref()?.message.clone().map(Arc::new)
}

impl From<ReadError> for ReplayError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Trimmed { .. } => Self::Expired,
            other => Self::Session(other.into()),
        }
    }
}

/// The cursor before the first event of a session.
pub fn beginning(of: Position) -> Position {
    Position::persisted(of.epoch, Seq(0))
}

#[cfg(test)]
mod tests;
