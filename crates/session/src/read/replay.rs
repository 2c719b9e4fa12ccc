//! Replay for a client that reconnects: events from the store, in chunks, up to a fixed position;
//! from there the client reads the ring.
//!
//! ```text
//!   cursor ──── store: persisted events, finished messages ──── T │ ring ──▶ live
//!                       (512 at most a chunk, paced by the socket)│ T, the ring's cursor and the
//!                       in flight at T: the transcript's copy ────┘ message in flight: one moment
//! ```
//!
//! A chunk is bounded in bytes too: what a client that stops reading holds is one chunk or, if that
//! is larger, one event.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::fold::MessageFold;
use turnwire_event::fold::replay::{FinishedReplay, ReplayRange, events as missed_events};
use turnwire_event::{Actor, EventFilter, EventHead, EventType, Position, Seq, SessionId};
use turnwire_log::{CountedEvents, EventSelection, Log, ReadError, ReadLimits, Store};

use crate::error::Error;
use crate::live::session::{LiveSession, ReplayCount};

/// Persisted events in the first chunk, so that a late reader gets something soon, and in the
/// largest one, which amortises a query and still shares two cores among many readers.
const CHUNK_FIRST: usize = 32;
const CHUNK_MAX: usize = 512;

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
    missed: FinishedReplay,
    /// The end of the replay: the ring's tail when the replay started.
    pub upto: Position,
    /// The cursor of the [`Ring`](turnwire_hub::Ring) at `upto`.
    pub cursor: u64,
    /// The number of persisted events that pass the filter.
    pub count: u64,
}

impl LiveSession {
    /// Starts a replay from a client's cursor, unless it would send more than `max` events, persisted
    /// and streaming ones. A cursor of another epoch is refused: its client may have seen lost events.
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
        let (upto, cursor) = self.ring.with_state(|_, tail, cursor| (tail, cursor));
        if since > upto {
            return Err(ReplayError::Expired);
        }
        let (count, streamed) = self.count_passing((since, upto), filter, max).await?;
        if count + streamed > max {
            return Err(ReplayError::TooLarge(count + streamed, max));
        }
        Ok(CatchUp {
            live: self.clone(),
            since,
            at: since,
            chunk: CHUNK_FIRST,
            upto,
            missed,
            cursor,
            count,
        })
    }

    /// Counts what a replay from `since` to `upto` sends, in pieces, until there is more than `max`:
    /// the persisted events that pass the filter, and beside them the streaming events. Fails if an
    /// event after `since` was trimmed.
    async fn count_passing(
        self: &Arc<Self>,
        (since, upto): (Position, Position),
        filter: &EventFilter,
        max: u64,
    ) -> Result<(u64, u64), ReplayError> {
        // Every persisted event passes: no need to read.
        let passes_all =
            filter.passes_all(EventFilter::full().types()) && filter.includes_suppressed();
        let last = self.last_replay_count.lock().clone();
        let last = last.filter(|last| last.upto <= upto && last.filter == *filter);
        let of_seq = last.as_ref().filter(|last| last.since.seq == since.seq);
        let (mut from, mut count) = match of_seq {
            _ if passes_all => (upto.seq, upto.seq.0 - since.seq.0),
            None => (since.seq, 0),
            Some(last) => (last.upto.seq, last.persisted),
        };
        loop {
            let counted = self
                .count_piece(since.seq, (from, upto.seq), filter)
                .await?;
            (from, count) = (counted.end, count + counted.events);
            if count > max {
                return Ok((count, 0));
            }
            if from >= upto.seq {
                break;
            }
        }
        let counted = |ends| ReplayCount {
            filter: filter.clone(),
            since,
            upto,
            persisted: count,
            ends,
        };
        if !passes_streamed(filter) {
            *self.last_replay_count.lock() = Some(counted(0));
            return Ok((count, 0));
        }
        // A replay without a limit needs no count of the rest.
        if max == u64::MAX {
            return Ok((count, 0));
        }
        let of_cursor = last.filter(|last| last.since == since);
        let counted_ends = of_cursor.map_or((since, 0), |last| (last.upto, last.ends));
        let left = max - count;
        let ends = self.count_ends((since, counted_ends, upto), filter, left);
        let ends = ends.await?;
        if ends <= left {
            *self.last_replay_count.lock() = Some(counted(ends));
        }
        let deltas = self.count_deltas((since, upto), filter).await?;
        Ok((count, ends + deltas))
    }

    /// Counts the starts and ends of the messages that completed in (`from`, `upto`] and pass the
    /// filter, on top of `count`, until there are more than `max`.
    async fn count_ends(
        &self,
        (since, (mut from, mut count), upto): (Position, (Position, u64), Position),
        filter: &EventFilter,
        max: u64,
    ) -> Result<u64, ReplayError> {
        let passes = |kind| passes_streamed_type(filter, kind);
        let (starts, ends) = (
            passes(EventType::MessageStart),
            passes(EventType::MessageComplete),
        );
        if !starts && !ends {
            return Ok(count);
        }
        let (id, piece) = (self.id, self.services.options.scan_max.max(1));
        while count <= max {
            let read = self.read_replay(move |store| {
                Ok::<_, ReplayError>(store.streamed_ranges(id, from, upto, piece)?)
            });
            let ranges = read.await?;
            for (started, completed) in &ranges {
                count += u64::from(starts && *started > since) + u64::from(ends);
                from = *completed;
            }
            if ranges.len() < piece {
                break;
            }
        }
        Ok(count)
    }

    /// Counts what a replay sends of the message that contains `since`, beside its end, and of the
    /// message in flight at `upto`: joined deltas, and the start of the latter.
    async fn count_deltas(
        self: &Arc<Self>,
        (since, upto): (Position, Position),
        filter: &EventFilter,
    ) -> Result<u64, ReplayError> {
        let (id, live, filter) = (self.id, self.clone(), filter.clone());
        let read = self.read_replay(move |store| {
            let in_flight = live.message_in_flight(upto);
            let mut messages = Vec::new();
            for at in [since, upto] {
                // The message that contains the position, if it is complete by now.
                let (stored, _) = store.streamed_messages(id, at, at, 0)?;
                messages.extend(stored.iter().filter_map(MessageFold::from_stored));
            }
            messages.retain(|fold| in_flight.as_ref().is_none_or(|open| open.id != fold.id));
            messages.extend(in_flight);
            messages.dedup_by_key(|fold| fold.id);
            let range = ReplayRange {
                since,
                upto,
                from: since,
                to: upto,
            };
            let mut count = 0;
            for fold in messages {
                let is_counted = |kind| match fold.completed {
                    // Counted with the messages that completed.
                    Some((end, ..)) if end <= upto => {
                        matches!(kind, EventType::MessageStart | EventType::MessageComplete)
                    }
                    _ => false,
                };
                let events = missed_events(&fold, id, range, FinishedReplay::Ends);
                let heads = events.iter().map(turnwire_event::Event::head);
                let passing = heads.filter(|head| filter.matches(head) && !is_counted(head.kind));
                count += passing.count() as u64;
            }
            Ok::<_, ReplayError>(count)
        });
        read.await
    }

    /// Fails if an event after `since` was trimmed from the log, also while the ring still has it: a
    /// client gets the same answer before and after a restart.
    pub async fn check_retained(&self, since: Position) -> Result<(), ReplayError> {
        let (id, since) = (self.id, since.seq);
        let read = self.read_replay(move |store| {
            let tail = store.tail(id)?.ok_or(Error::SessionNotFound)?;
            match since < tail.low {
                true => Err(ReplayError::Expired),
                false => Ok(()),
            }
        });
        read.await
    }

    /// Counts as many events as one read may look at.
    async fn count_piece(
        &self,
        since: Seq,
        (from, upto): (Seq, Seq),
        filter: &EventFilter,
    ) -> Result<CountedEvents, ReplayError> {
        let (id, scan_max) = (self.id, self.services.options.scan_max);
        let selection = EventSelection::from(filter);
        let read = self.read_replay(move |store| {
            let tail = store.tail(id)?.ok_or(Error::SessionNotFound)?;
            if since < tail.low {
                return Err(ReplayError::Expired);
            }
            if from >= upto {
                return Ok(CountedEvents {
                    events: 0,
                    end: upto,
                });
            }
            Ok(store.count(id, from, upto, &selection, scan_max)?)
        });
        read.await
    }
}

impl LiveSession {
    /// Counts stored events that were read for a client, in the quotas of the session's owner.
    pub fn charge_replay(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.services.quotas.charge_replay(&self.owner, bytes);
    }

    /// A copy of the message in flight, if it started at `upto` or before.
    fn message_in_flight(&self, upto: Position) -> Option<MessageFold> {
        self.ring.with_state(|transcript, _, _| {
            let message = transcript.open.as_ref()?.message.as_ref();
            message.filter(|message| message.started <= upto).cloned()
        })
    }
}

impl CatchUp {
    /// The end of the last chunk: a cursor that covers every event up to there.
    pub fn position(&self) -> Position {
        self.at
    }

    /// Returns to `position`, at or before the end of the last chunk: the next chunk begins there,
    /// but not before the replay itself.
    pub fn rewind(&mut self, position: Position) {
        (self.at, self.chunk) = (position.max(self.since), CHUNK_FIRST);
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
        let (id, missed, options) = (self.live.id, self.missed, &self.live.services.options);
        let limits = ReadLimits {
            events: self.chunk,
            bytes: options.replay_bytes,
            scanned: options.scan_max,
        };
        let remaining = ReplayRange {
            since: self.since,
            upto: self.upto,
            from: self.at,
            to: self.upto,
        };
        let (filter, live) = (filter.cloned(), self.live.clone());
        let read = self.live.read_replay(move |store| {
            let in_flight = |to| live.message_in_flight(to).map(Cow::Owned);
            let selection = (limits, filter.as_ref());
            let chunk = read_chunk(store, id, remaining, selection, &in_flight, missed);
            Ok::<_, ReplayError>(chunk?)
        });
        let (chunk, at) = read.await?;
        self.at = at;
        self.chunk = (self.chunk * 4).min(CHUNK_MAX);
        Ok(Some(chunk))
    }
}

/// Events of a replay in order, and the position that they are complete up to.
pub type ReplayChunk = (Vec<(EventHead, Bytes)>, Position);

/// Looks up the message in flight that started by a position.
pub type InFlight<'a> = &'a dyn Fn(Position) -> Option<Cow<'a, MessageFold>>;

/// Reads the first chunk of `remaining`, within `limits`: the stored events that can pass the filter,
/// and of streamed messages what a client at `remaining.since` has missed. `in_flight` gives the
/// message that is in flight now, if it started by the given position: no copy is kept between
/// chunks.
pub fn read_chunk(
    store: &dyn Store,
    id: SessionId,
    remaining: ReplayRange,
    (limits, filter): (ReadLimits, Option<&EventFilter>),
    in_flight: InFlight<'_>,
    missed: FinishedReplay,
) -> Result<ReplayChunk, ReadError> {
    let selection = filter.map_or_else(EventSelection::all, EventSelection::from);
    let (from, upto) = (remaining.from.seq, remaining.upto.seq);
    let read = store.read(id, from, upto, &selection, limits)?;
    let mut to = match read.events.last() {
        _ if read.end == upto => remaining.upto,
        Some(last) if last.seq == read.end => last.head.position,
        _ => position_of(store, id, read.end)?,
    };
    let stored = read.events.into_iter();
    let mut events: Vec<(EventHead, Bytes)> =
        stored.map(|event| (event.head, event.bytes)).collect();
    if !filter.is_none_or(passes_streamed) {
        return Ok((events, to));
    }
    // Before the stored messages: one that completes in between is found there.
    let in_flight = in_flight(to);
    let (messages, complete_to) = store.streamed_messages(id, remaining.from, to, limits.bytes)?;
    if complete_to < to {
        to = complete_to;
        events.retain(|(head, _)| head.position <= to);
    }
    let piece = ReplayRange { to, ..remaining };
    let stored_count = events.len();
    // The message in flight at `upto` may be complete by now: it is replayed as it was then.
    let folds = messages.iter().filter_map(MessageFold::from_stored);
    let folds = folds.filter(|fold| in_flight.as_ref().is_none_or(|open| open.id != fold.id));
    let mut push_message = |fold: &MessageFold| {
        // The events of a message are in order: once they exceed the chunk, the rest is after it.
        let (mut pushed, mut last) = (0, piece.from);
        for event in missed_events(fold, id, piece, missed) {
            if pushed > limits.bytes {
                to = to.min(last);
                return;
            }
            let bytes = Bytes::from(event.to_bytes().into_boxed_slice());
            (pushed, last) = (pushed + bytes.len(), event.id);
            events.push((event.head(), bytes));
        }
    };
    folds.for_each(|fold| push_message(&fold));
    in_flight.iter().for_each(|fold| push_message(fold));
    if events.len() > stored_count {
        // A message may have been left off at `to`: the chunk ends there for the others too.
        events.retain(|(head, _)| head.position <= to);
        events.sort_by_key(|(head, _)| head.position);
        to = cut(&mut events, limits.bytes).unwrap_or(to);
    }
    Ok((events, to))
}

/// Removes the events that do not fit into `bytes_max`, but not the first one. Returns the position
/// of the last that is left if there were more.
fn cut(events: &mut Vec<(EventHead, Bytes)>, bytes_max: usize) -> Option<Position> {
    let mut sum = 0;
    let fits = |(_, bytes): &&(EventHead, Bytes)| {
        let is_first = sum == 0;
        sum += bytes.len();
        is_first || sum <= bytes_max
    };
    let count = events.iter().take_while(fits).count();
    if count == events.len() {
        return None;
    }
    events.truncate(count);
    events.last().map(|(head, _)| head.position)
}

/// Whether the filter lets through events of messages that stream, which are not in the log.
fn passes_streamed(filter: &EventFilter) -> bool {
    filter.types().iter().any(|kind| !kind.is_persisted())
}

/// Whether the filter lets through events of this type of messages that stream: they are the
/// orchestrator's and never hidden.
fn passes_streamed_type(filter: &EventFilter, kind: EventType) -> bool {
    let is_orchestrator = |actor: &Actor| Actor::ORCHESTRATOR.matches(actor);
    let actors = filter.actors();
    filter.types().contains(kind) && actors.is_none_or(|actors| actors.iter().any(is_orchestrator))
}

/// The position of a stored event; it has the epoch in which the event was written.
fn position_of(log: &dyn Log, session: SessionId, seq: Seq) -> Result<Position, ReadError> {
    let all = EventSelection::all();
    let read = log.read(session, seq.prev(), seq, &all, ReadLimits::ONE)?;
    let event = read.events.first().ok_or(ReadError::Damaged {
        session,
        seq: seq.0,
    })?;
    Ok(event.head.position)
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
