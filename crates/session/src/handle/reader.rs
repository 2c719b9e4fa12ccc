//! The handle that reads rows, messages and events, page by page, each for its owner alone.

use std::sync::Arc;

use turnwire_event::row::{LlmCallRow, SessionRow, ToolCallRow, TurnRow};
use turnwire_event::{
    CallId, Message, MessageId, Owner, Position, SessionId, TenantId, Timestamp, ToolUseId, TurnId,
    TypeSet, UtcDay,
};
use turnwire_log::{
    DailyUsage, EventSelection, Log, MessageView, ReadError, StatusCount, Store, StoredEvent,
};

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::live::transcript::Transcript;

/// Selects the events that [`SessionReader::events`] returns.
#[derive(Clone, Debug)]
pub struct EventLogQuery {
    /// Only events after this position; `None` starts at the oldest stored event.
    pub since: Option<Position>,
    /// Only events of these types; `None` selects all.
    pub types: Option<TypeSet>,
    /// The largest number of events in the page.
    pub limit: usize,
}

/// A page of a session's log, as [`SessionReader::events`] returns it.
#[derive(Clone, Debug)]
pub struct EventPage {
    /// The selected events, oldest first.
    pub events: Vec<StoredEvent>,
    /// The cursor of the next page; `None` at the end of the log.
    pub next: Option<Position>,
    /// The hash of the event before the page, for checking the hash chain.
    pub previous_hash: [u8; 32],
}

/// Rows of a list, and the cursor of the next page; `None` at its end.
type Page<T, K> = (Vec<T>, Option<K>);

/// Cuts `rows` to a page of `limit`, and returns the key of its last row if there are more.
fn page<T, K>(mut rows: Vec<T>, limit: usize, key: impl Fn(&T) -> K) -> Page<T, K> {
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(key);
    (rows, next)
}

handle!(
    /// Reads sessions, turns, messages, calls and events.
    SessionReader
);

impl SessionReader {
    /// An owner's sessions, newest first.
    pub async fn sessions(
        &self,
        owner: &Owner,
        before: Option<SessionId>,
        limit: usize,
    ) -> Result<Page<SessionRow, SessionId>, Error> {
        let owner = owner.clone();
        let rows = self
            .core
            .services
            .read_rows(move |store| store.sessions(&owner, before, limit + 1))
            .await?;
        Ok(page(rows, limit, |row| row.id))
    }

    /// A page of the rows that `read` returns for a session of `owner`; `read` gets the number of
    /// rows to read, one more than the page has.
    async fn session_page<T: Send + 'static, K>(
        &self,
        (owner, id): (&Owner, SessionId),
        limit: usize,
        read: impl FnOnce(&dyn Store, usize) -> Result<Vec<T>, ReadError> + Send + 'static,
        key: impl Fn(&T) -> K,
    ) -> Result<Page<T, K>, Error> {
        let live = self.core.open(owner, id).await?;
        let rows = read_session(&live, move |store| Ok(read(store, limit + 1)?)).await?;
        Ok(page(rows, limit, key))
    }

    /// A session's workers, newest first, each with its newest turn.
    pub async fn workers(
        &self,
        owner: &Owner,
        id: SessionId,
        before: Option<SessionId>,
        limit: usize,
    ) -> Result<Page<(SessionRow, Option<TurnRow>), SessionId>, Error> {
        let read = move |store: &dyn Store, limit| {
            let workers = store.workers(id, before, limit)?.into_iter();
            let with_turn = workers.map(|worker| {
                let newest = store.turns(worker.id, None, 1)?.pop();
                Ok((worker, newest))
            });
            with_turn.collect()
        };
        self.session_page((owner, id), limit, read, |(worker, _)| worker.id)
            .await
    }

    /// A session's turns, newest first.
    pub async fn turns(
        &self,
        owner: &Owner,
        id: SessionId,
        before: Option<TurnId>,
        limit: usize,
    ) -> Result<Page<TurnRow, TurnId>, Error> {
        let read = move |store: &dyn Store, limit| store.turns(id, before, limit);
        self.session_page((owner, id), limit, read, |row| row.id)
            .await
    }

    /// The row of a turn.
    pub async fn turn(&self, owner: &Owner, id: TurnId) -> Result<TurnRow, Error> {
        self.core.turn(owner, id).await
    }

    /// A session's messages, the newest page first, each page oldest first.
    pub async fn messages(
        &self,
        owner: &Owner,
        id: SessionId,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Page<Message, MessageId>, Error> {
        let live = self.core.open(owner, id).await?;
        let in_flight_and_tail =
            |transcript: &Transcript, tail, _| (transcript.id_in_flight(), tail);
        let (in_flight, upto) = live.ring.with_state(in_flight_and_tail);
        let mut messages = match before {
            None => live.snapshot(limit + 1).await?.messages,
            Some(before) => {
                let stored = read_session(&live, move |store| {
                    // The message in flight is not stored: all stored messages are before it.
                    let before = Some(before).filter(|before| in_flight != Some(*before));
                    if let Some(before) = before {
                        store.message(id, before)?.ok_or(Error::MessageNotFound)?;
                    }
                    Ok(store.messages(id, MessageView::Clients, upto, before, limit + 1)?)
                })
                .await?;
                stored.into_iter().map(|stored| stored.message).collect()
            }
        };
        let has_more = messages.len() > limit;
        if has_more {
            messages.remove(0);
        }
        let oldest = messages.first().filter(|_| has_more);
        let next = oldest.map(|message| message.id);
        Ok((messages, next))
    }

    /// How often each status was emitted: in total, and on each of the last 30 days (S1-073).
    pub async fn status_counts(&self) -> Result<Vec<StatusCount>, Error> {
        const DAYS: i64 = 30;
        let now = self.core.services.clock.now().as_millis();
        let since = Timestamp::from_millis(now - (DAYS - 1) * 24 * 3600 * 1000);
        self.core
            .services
            .read_rows(move |store| store.status_counts(since))
            .await
    }

    /// A session's tool calls, newest first.
    pub async fn tool_calls(
        &self,
        owner: &Owner,
        id: SessionId,
        before: Option<ToolUseId>,
        limit: usize,
    ) -> Result<Page<ToolCallRow, ToolUseId>, Error> {
        let read = move |store: &dyn Store, limit| store.tool_calls(id, before, limit);
        self.session_page((owner, id), limit, read, |row| row.tool_use_id)
            .await
    }

    /// A session's model calls, newest first.
    pub async fn llm_calls(
        &self,
        owner: &Owner,
        id: SessionId,
        before: Option<CallId>,
        limit: usize,
    ) -> Result<Page<LlmCallRow, CallId>, Error> {
        let read = move |store: &dyn Store, limit| store.llm_calls(id, before, limit);
        self.session_page((owner, id), limit, read, |row| row.call_id)
            .await
    }

    /// Token usage and cost of a tenant from the first day to the last, by day and model: the
    /// oldest `limit` rows. They do not say which owner within the tenant caused them.
    pub async fn usage(
        &self,
        tenant: TenantId,
        days: (UtcDay, UtcDay),
        limit: usize,
    ) -> Result<Vec<DailyUsage>, Error> {
        self.core
            .services
            .read_rows(move |store| store.daily_usage(Some(tenant), days, limit))
            .await
    }

    /// The current day of the clock that labels events.
    pub fn today(&self) -> UtcDay {
        UtcDay::of(self.core.services.clock.now())
    }

    /// A page of a session's log.
    pub async fn events(
        &self,
        owner: &Owner,
        id: SessionId,
        query: EventLogQuery,
    ) -> Result<EventPage, Error> {
        let live = self.core.open(owner, id).await?;
        loop {
            let (tail, query) = (live.tail(), query.clone());
            let from_start = query.since.is_none();
            match read_session(&live, move |store| event_page(store, id, tail, &query)).await {
                // Retention removed events meanwhile: the log starts at a later position now.
                Err(Error::CursorExpired) if from_start => {}
                result => return result,
            }
        }
    }
}

fn event_page(
    log: &dyn Log,
    id: SessionId,
    tail: Position,
    query: &EventLogQuery,
) -> Result<EventPage, Error> {
    let low = log.tail(id)?.ok_or(Error::SessionNotFound)?.low;
    let after = match query.since {
        None => low,
        Some(since) if since.epoch != tail.epoch || since > tail || since.seq < low => {
            return Err(Error::CursorExpired);
        }
        Some(since) => since.seq,
    };
    let previous_hash = log.hash_at(id, after)?.0;
    let selection = match query.types {
        Some(types) => EventSelection::all().with_types(types),
        None => EventSelection::all(),
    };
    let events = log.read(id, after, tail.seq, &selection, query.limit)?;
    let last = events.last().map_or(tail.seq, |event| event.seq);
    let has_more = events.len() == query.limit && last < tail.seq;
    Ok(EventPage {
        next: has_more.then_some(Position::persisted(tail.epoch, last)),
        events,
        previous_hash,
    })
}

/// Reads from the store for a session; a damaged record quarantines the session.
async fn read_session<T: Send + 'static>(
    live: &Arc<LiveSession>,
    read: impl FnOnce(&dyn Store) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let result = live.services.read(read).await;
    if matches!(result, Err(Error::Quarantined)) {
        live.quarantine();
    }
    result
}
