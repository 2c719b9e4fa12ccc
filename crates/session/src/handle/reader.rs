//! The handle that reads rows, messages and events, page by page, each for its owner alone.

use std::sync::Arc;

use turnwire_event::row::{LlmCallRow, SessionRow, ToolCallRow, TurnRow};
use turnwire_event::{
    CallId, Message, MessageId, Owner, Position, SessionId, TenantId, Timestamp, ToolUseId, TurnId,
    TypeSet, UpstreamId, UtcDay,
};
use turnwire_log::{
    DailyUsage, EventSelection, Log, MessageView, PageBounds, ReadError, ReadLimits, RowPage,
    SessionsOf, StatusCount, Store, StoredEvent,
};

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::live::transcript::Transcript;
use crate::read::viewer::Viewer;
use crate::store_read::Reader;

/// Selects the events that [`SessionReader::events`] returns.
#[derive(Clone, Debug)]
pub struct EventLogQuery {
    /// Only events after this position; `None` starts at the oldest stored event.
    pub since: Option<Position>,
    /// Only events of these types; `None` selects all.
    pub types: Option<TypeSet>,
    /// The largest number of events in the page.
    pub limit: usize,
    /// The largest sum of the sizes of the events. The first event is in the page even if it alone is
    /// larger.
    pub bytes_max: usize,
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

/// The rows of a page, newest first, and the key of the last one if the list goes on behind it.
fn page<T, K>(page: RowPage<T>, key: impl Fn(&T) -> K) -> Page<T, K> {
    let next = page.rows.last().filter(|_| page.has_more).map(key);
    (page.rows, next)
}

handle!(
    /// Reads sessions, turns, messages, calls and events.
    SessionReader
);

impl SessionReader {
    /// An owner's sessions, newest first, without their metadata.
    pub async fn sessions(
        &self,
        owner: &Owner,
        before: Option<SessionId>,
        bounds: impl Into<PageBounds>,
    ) -> Result<Page<SessionRow, SessionId>, Error> {
        self.sessions_of(owner, SessionsOf::Owner(owner.clone()), before, bounds)
            .await
    }

    /// Sessions of others, as far as `reader` may read them, newest first, without their metadata.
    /// Read on the share of `reader`.
    pub async fn sessions_of(
        &self,
        reader: &Owner,
        of: SessionsOf,
        before: Option<SessionId>,
        bounds: impl Into<PageBounds>,
    ) -> Result<Page<SessionRow, SessionId>, Error> {
        let bounds = bounds.into();
        let read = move |store: &dyn Store| store.sessions(&of, before, bounds);
        let rows = self.core.services.read_rows_for(reader, read).await?;
        Ok(page(rows, |row| row.id))
    }

    /// The page that `read` returns for a session of `owner`.
    async fn session_page<T: Send + 'static, K>(
        &self,
        (viewer, id): (Viewer<'_>, SessionId),
        read: impl FnOnce(&dyn Store) -> Result<RowPage<T>, ReadError> + Send + 'static,
        key: impl Fn(&T) -> K,
    ) -> Result<Page<T, K>, Error> {
        let live = self.core.open(viewer, id).await?;
        let rows = read_session(&live, move |store| Ok(read(store)?)).await?;
        Ok(page(rows, key))
    }

    /// A session's workers, newest first, without their metadata, each with its newest turn.
    pub async fn workers(
        &self,
        viewer: impl Into<Viewer<'_>>,
        id: SessionId,
        before: Option<SessionId>,
        bounds: impl Into<PageBounds>,
    ) -> Result<Page<(SessionRow, Option<TurnRow>), SessionId>, Error> {
        let bounds = bounds.into();
        let read = move |store: &dyn Store| {
            let workers = store.workers(id, before, bounds)?;
            let with_turn = workers.rows.into_iter().map(|worker| {
                let newest = store.turns(worker.id, None, 1.into())?.rows.pop();
                Ok((worker, newest))
            });
            Ok(RowPage {
                rows: with_turn.collect::<Result<_, ReadError>>()?,
                has_more: workers.has_more,
            })
        };
        self.session_page((viewer.into(), id), read, |(worker, _)| worker.id)
            .await
    }

    /// A session's turns, newest first.
    pub async fn turns(
        &self,
        viewer: impl Into<Viewer<'_>>,
        id: SessionId,
        before: Option<TurnId>,
        bounds: impl Into<PageBounds>,
    ) -> Result<Page<TurnRow, TurnId>, Error> {
        let bounds = bounds.into();
        let read = move |store: &dyn Store| store.turns(id, before, bounds);
        self.session_page((viewer.into(), id), read, |row| row.id)
            .await
    }

    /// The row of a turn.
    pub async fn turn(&self, viewer: impl Into<Viewer<'_>>, id: TurnId) -> Result<TurnRow, Error> {
        self.core.turn(viewer, id).await
    }

    /// The turn of `owner` whose upstream gave its response the id `id`.
    pub async fn turn_of_response(&self, owner: &Owner, id: UpstreamId) -> Result<TurnId, Error> {
        self.core.turn_of_response(owner, id).await
    }

    /// A session's messages, the newest page first, each page oldest first.
    pub async fn messages(
        &self,
        viewer: impl Into<Viewer<'_>>,
        id: SessionId,
        before: Option<MessageId>,
        bounds: impl Into<PageBounds>,
    ) -> Result<Page<Message, MessageId>, Error> {
        let bounds = bounds.into();
        let live = self.core.open(viewer, id).await?;
        let in_flight_and_tail =
            |transcript: &Transcript, tail, _| (transcript.id_in_flight(), tail);
        let (in_flight, upto) = live.ring.with_state(in_flight_and_tail);
        let (messages, has_older) = match before {
            None => {
                let snapshot = live.snapshot(bounds).await?;
                (snapshot.messages, snapshot.has_older)
            }
            Some(before) => {
                let stored = read_session(&live, move |store| {
                    // The message in flight is not stored: all stored messages are before it.
                    let before = Some(before).filter(|before| in_flight != Some(*before));
                    if let Some(before) = before {
                        store.message(id, before)?.ok_or(Error::MessageNotFound)?;
                    }
                    Ok(store.messages(id, MessageView::Clients, upto, before, bounds)?)
                })
                .await?;
                (stored.rows, stored.has_more)
            }
        };
        let oldest = messages.first().filter(|_| has_older);
        let next = oldest.map(|message| message.id);
        Ok((messages, next))
    }

    /// A message of a session, whole, also while it streams.
    pub async fn message(
        &self,
        viewer: impl Into<Viewer<'_>>,
        id: SessionId,
        message: MessageId,
    ) -> Result<Message, Error> {
        let live = self.core.open(viewer, id).await?;
        let in_flight = live.ring.with_state(|transcript, _, _| {
            let is_in_flight = transcript.id_in_flight() == Some(message);
            is_in_flight.then(|| transcript.message_in_flight(usize::MAX))
        });
        if let Some(message) = in_flight.flatten() {
            return Ok(message);
        }
        let read = read_session(&live, move |store| {
            store.message(id, message)?.ok_or(Error::MessageNotFound)
        });
        Ok(read.await?.message)
    }

    /// How often each status was emitted by all owners: in total, and on each of the last 30 days
    /// (S1-073). Read on the share of the owner who asks.
    pub async fn status_counts(&self, owner: &Owner) -> Result<Vec<StatusCount>, Error> {
        const DAYS: i64 = 30;
        let now = self.core.services.clock.now().as_millis();
        let since = Timestamp::from_millis(now - (DAYS - 1) * 24 * 3600 * 1000);
        let read = move |store: &dyn Store| Ok(store.status_counts(since)?);
        let reader = Reader::Owner(owner.clone());
        self.core.services.read_for(reader, read).await
    }

    /// A session's tool calls, newest first.
    pub async fn tool_calls(
        &self,
        viewer: impl Into<Viewer<'_>>,
        id: SessionId,
        before: Option<ToolUseId>,
        bounds: impl Into<PageBounds>,
    ) -> Result<Page<ToolCallRow, ToolUseId>, Error> {
        let bounds = bounds.into();
        let read = move |store: &dyn Store| store.tool_calls(id, before, bounds);
        self.session_page((viewer.into(), id), read, |row| row.tool_use_id)
            .await
    }

    /// A session's model calls, newest first.
    pub async fn llm_calls(
        &self,
        viewer: impl Into<Viewer<'_>>,
        id: SessionId,
        before: Option<CallId>,
        bounds: impl Into<PageBounds>,
    ) -> Result<Page<LlmCallRow, CallId>, Error> {
        let bounds = bounds.into();
        let read = move |store: &dyn Store| store.llm_calls(id, before, bounds);
        self.session_page((viewer.into(), id), read, |row| row.call_id)
            .await
    }

    /// Token usage and cost of a tenant, or of all, from the first day to the last, by day and model:
    /// the oldest `limit` rows. They do not say which owner within the tenant caused them. Read on the
    /// share of `owner`.
    pub async fn usage(
        &self,
        owner: &Owner,
        tenant: Option<TenantId>,
        days: (UtcDay, UtcDay),
        limit: usize,
    ) -> Result<Vec<DailyUsage>, Error> {
        let read = move |store: &dyn Store| Ok(store.daily_usage(tenant, days, limit)?);
        let reader = Reader::Owner(owner.clone());
        self.core.services.read_for(reader, read).await
    }

    /// The current day of the clock that labels events.
    pub fn today(&self) -> UtcDay {
        UtcDay::of(self.core.services.clock.now())
    }

    /// A page of a session's log.
    pub async fn events(
        &self,
        viewer: impl Into<Viewer<'_>>,
        id: SessionId,
        query: EventLogQuery,
    ) -> Result<EventPage, Error> {
        let live = self.core.open(viewer, id).await?;
        loop {
            let (tail, query) = (live.tail(), query.clone());
            let from_start = query.since.is_none();
            let limits = ReadLimits {
                events: query.limit,
                bytes: query.bytes_max,
                scanned: self.core.services.options.scan_max,
            };
            let read = move |store: &dyn Store| event_page(store, id, tail, &query, limits);
            match read_session(&live, read).await {
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
    limits: ReadLimits,
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
    let read = log.read(id, after, tail.seq, &selection, limits)?;
    let has_more = read.end < tail.seq;
    Ok(EventPage {
        next: has_more.then_some(Position::persisted(tail.epoch, read.end)),
        events: read.events,
        previous_hash,
    })
}

/// Reads from the store for a session; a damaged record quarantines the session.
async fn read_session<T: Send + 'static>(
    live: &Arc<LiveSession>,
    read: impl FnOnce(&dyn Store) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let result = live.read(read).await;
    if matches!(result, Err(Error::Quarantined)) {
        live.quarantine();
    }
    result
}
