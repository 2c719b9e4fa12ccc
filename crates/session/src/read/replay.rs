//! Replay for a client that reconnects: events from the store, in chunks, up to a fixed position;
//! from there the client reads the ring.
//!
//! ```text
//!   cursor ──── store: persisted events, finished messages ──── T │ ring ──▶ live
//!                       (512 at most a chunk, paced by the socket)│ T, the ring's cursor and the
//!                       in flight at T: the transcript's copy ────┘ message in flight: one moment
//! ```

use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::fold::MessageFold;
use turnwire_event::fold::replay::{FinishedReplay, ReplayRange, events as missed_events};
use turnwire_event::{EventFilter, EventHead, Position, Seq, SessionId};
use turnwire_log::{EventSelection, Log, ReadError, Store};

use crate::error::Error;
use crate::live::session::{LiveSession, ReplayCount};
use crate::live::transcript::Transcript;

/// Persisted events in the first chunk, so that a late reader gets something soon, and in the
/// largest one, which amortises a query and still shares two cores among many readers.
const CHUNK_FIRST: usize = 32;
const CHUNK_MAX: usize = 512;
/// Events that a filtered read may step over for each event it may return: bounds one read of a
/// narrow filter to 16,384 events, a few milliseconds.
const SCAN_FACTOR: usize = 32;

/// The reason that events cannot be replayed; the client takes a
/// [`snapshot`](LiveSession::snapshot) instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The cursor is of another epoch, ahead of the tail, or before the oldest stored event.
    #[error("the cursor is outside of the stored events; take a snapshot")]
    Expired,
    /// More events pass the filter (first value) than a replay may have (second value).
    #[error("{0} events to replay exceed the limit of {1}; take a snapshot")]
    TooLarge(u64, u64),
    /// The session is damaged or deleted.
    #[error(transparent)]
    Session(#[from] Error),
}

/// A replay in progress: [`next`](Self::next) returns chunks until the client reads the ring.
pub struct CatchUp {
    live: Arc<LiveSession>,
    /// The client's cursor: the replay has every event after it.
    pub since: Position,
    /// The end of the last chunk.
    at: Position,
    chunk: usize,
    in_flight: Option<Arc<MessageFold>>,
    missed: FinishedReplay,
    /// The end of the replay: the ring's tail when the replay started.
    pub upto: Position,
    /// The cursor of the [`Ring`](turnwire_hub::Ring) at `upto`.
    pub cursor: u64,
    /// The number of persisted events that pass the filter.
    pub count: u64,
}

impl LiveSession {
    /// Starts a replay from a client's cursor, unless more than `max` persisted events pass the
    /// filter. A cursor of another epoch is refused: its client may have seen lost events.
    pub async fn catch_up(
        self: &Arc<Self>,
        since: Position,
        filter: &EventFilter,
        missed: FinishedReplay,
        max: u64,
    ) -> Result<CatchUp, ReplayError> {
        if since.epoch != self.tail().epoch {
            return Err(ReplayError::Expired);
        }
        self.catch_up_from(since, filter, missed, max).await
    }

    /// Like [`catch_up`](Self::catch_up), from a position that the log itself contains.
    pub async fn catch_up_from(
        self: &Arc<Self>,
        since: Position,
        filter: &EventFilter,
        missed: FinishedReplay,
        max: u64,
    ) -> Result<CatchUp, ReplayError> {
        let (in_flight, upto, cursor) = self
            .ring
            .with_state(|transcript, tail, cursor| (message_in_flight(transcript), tail, cursor));
        if since > upto {
            return Err(ReplayError::Expired);
        }
        let (live, filter) = (self.clone(), filter.clone());
        let permit = self.services.replay_permits.acquire().await;
        let read = self.services.read(move |store| {
            let tail = store.tail(live.id)?.ok_or(Error::SessionNotFound)?;
            if since.seq < tail.low {
                return Err(ReplayError::Expired);
            }
            match live.count_passing(store, (since.seq, upto.seq), filter)? {
                count if count > max => Err(ReplayError::TooLarge(count, max)),
                count => Ok(count),
            }
        });
        let count = read.await?;
        drop(permit);
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

    /// Counts the persisted events after `since` that pass the filter.
    fn count_passing(
        &self,
        log: &dyn Log,
        (since, upto): (Seq, Seq),
        filter: EventFilter,
    ) -> Result<u64, ReplayError> {
        // Every persisted event passes: no need to read.
        if filter.passes_all(EventFilter::full().types()) && filter.includes_suppressed() {
            return Ok(upto.0 - since.0);
        }
        let last = self.last_replay_count.lock().clone();
        let last =
            last.filter(|last| last.since == since && last.upto <= upto && last.filter == filter);
        let (from, counted) = last.map_or((since, 0), |last| (last.upto, last.count));
        let mut count = counted;
        if from < upto {
            count += log.count(self.id, from, upto, &EventSelection::from(&filter))?;
        }
        *self.last_replay_count.lock() = Some(ReplayCount {
            filter,
            since,
            upto,
            count,
        });
        Ok(count)
    }
}

impl CatchUp {
    /// The end of the last chunk: a cursor that covers every event up to there.
    pub fn position(&self) -> Position {
        self.at
    }

    /// The next chunk of events, in order; `None` when the client reads on from the ring. With a
    /// filter the chunk leaves out events that do not pass it where the log can skip them; the
    /// caller still matches each head. Events that are left out are not checked against the hash
    /// chain.
    pub async fn next(
        &mut self,
        filter: Option<&EventFilter>,
    ) -> Result<Option<Vec<(EventHead, Bytes)>>, ReplayError> {
        if self.at == self.upto {
            return Ok(None);
        }
        let (id, missed, limit) = (self.live.id, self.missed, self.chunk);
        let remaining = ReplayRange {
            since: self.since,
            upto: self.upto,
            from: self.at,
            to: self.upto,
        };
        let (filter, in_flight) = (filter.cloned(), self.in_flight.clone());
        let permit = self.live.services.replay_permits.acquire().await;
        let read = self.live.services.read(move |store| {
            let (selection, in_flight) = ((limit, filter.as_ref()), in_flight.as_deref());
            let chunk = read_chunk(store, id, remaining, selection, in_flight, missed);
            Ok::<_, ReplayError>(chunk?)
        });
        let (chunk, at) = read.await?;
        drop(permit);
        self.at = at;
        self.chunk = (self.chunk * 4).min(CHUNK_MAX);
        Ok(Some(chunk))
    }
}

/// Events of a replay in order, and the position that they are complete up to.
pub type ReplayChunk = (Vec<(EventHead, Bytes)>, Position);

/// Reads the first chunk of `remaining`, with at most `limit` persisted events: the stored events
/// that can pass the filter, and of streamed messages what a client at `remaining.since` has
/// missed. `in_flight` is the message that was in flight at `remaining.upto`.
pub fn read_chunk(
    store: &dyn Store,
    id: SessionId,
    remaining: ReplayRange,
    (limit, filter): (usize, Option<&EventFilter>),
    in_flight: Option<&MessageFold>,
    missed: FinishedReplay,
) -> Result<ReplayChunk, ReadError> {
    let selection = filter.map_or_else(EventSelection::all, EventSelection::from);
    let streams = filter.is_none_or(passes_streamed);
    // Messages are read by the range of the chunk: it must not span more of them than before.
    let scan_max = if selection.is_all() || streams {
        limit
    } else {
        limit * SCAN_FACTOR
    };
    let scan_end = Seq(remaining.from.seq.0 + scan_max as u64).min(remaining.upto.seq);
    let stored = store.read(id, remaining.from.seq, scan_end, &selection, limit)?;
    let to = match stored.last() {
        Some(last) if stored.len() == limit => last.head.position,
        _ if scan_end == remaining.upto.seq => remaining.upto,
        _ => position_of(store, id, scan_end)?,
    };
    let piece = ReplayRange { to, ..remaining };
    let mut events: Vec<(EventHead, Bytes)> = stored
        .into_iter()
        .map(|event| (event.head, event.bytes))
        .collect();
    if !streams {
        return Ok((events, to));
    }
    let stored_count = events.len();
    let folds = store.streamed_messages(id, piece.from, piece.to)?;
    // The message in flight at `upto` may be complete by now: it is replayed as it was then.
    let folds = folds.iter().filter_map(MessageFold::from_stored);
    let folds = folds.filter(|fold| fold.completed.is_some_and(|(at, ..)| at <= remaining.upto));
    let mut push_message = |fold: &MessageFold| {
        for event in missed_events(fold, id, piece, missed) {
            events.push((event.head(), Bytes::from(event.to_bytes())));
        }
    };
    folds.for_each(|fold| push_message(&fold));
    in_flight.into_iter().for_each(&mut push_message);
    if events.len() > stored_count {
        events.sort_by_key(|(head, _)| head.position);
    }
    Ok((events, to))
}

/// Whether the filter lets through events of messages that stream, which are not in the log.
fn passes_streamed(filter: &EventFilter) -> bool {
    filter.types().iter().any(|kind| !kind.is_persisted())
}

/// The position of a stored event; it has the epoch in which the event was written.
fn position_of(log: &dyn Log, session: SessionId, seq: Seq) -> Result<Position, ReadError> {
    let events = log.read(session, seq.prev(), seq, &EventSelection::all(), 1)?;
    let event = events.first().ok_or(ReadError::Damaged {
        session,
        seq: seq.0,
    })?;
    Ok(event.head.position)
}

/// A copy of the [`MessageFold`] in flight.
fn message_in_flight(transcript: &Transcript) -> Option<Arc<MessageFold>> {
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

#[cfg(test)]
mod tests;
