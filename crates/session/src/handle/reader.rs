//! Reading: lists and single rows, page by page, each for its owner alone.

use std::sync::Arc;

use turnwire_event::row::{LlmCallRow, SessionRow, ToolCallRow, TurnRow};
use turnwire_event::{
    CallId, Day, Message, MessageId, Owner, Position, Seq, SessionId, TenantId, Timestamp,
    ToolUseId, TurnId, TypeSet,
};
use turnwire_log::{StatusCount, Store, StoredEvent, UsageDay, View};

use crate::error::Error;
use crate::lifecycle::core::Sessions;
use crate::live::session::LiveSession;
use crate::store_read::blocking;

/// What is wanted of a log.
#[derive(Clone, Debug)]
pub struct EventsQuery {
    /// Events after this.
    pub since: Option<Position>,
    /// Of these types; none is all.
    pub types: Option<TypeSet>,
    /// At most so many.
    pub limit: usize,
}

/// A page of a log.
#[derive(Clone, Debug)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<StoredEvent>,
    /// Where to go on; none at the end.
    pub next: Option<Position>,
    /// The hash before the first of them.
    pub previous_hash: [u8; 32],
}

/// A page and its cursor: `limit` rows, and the key of the last if there may be more.
fn page<T, K>(mut rows: Vec<T>, limit: usize, key: impl Fn(&T) -> K) -> (Vec<T>, Option<K>) {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(key);
    (rows, next)
}

impl Sessions {
    /// An owner's sessions, newest first.
    pub async fn list(
        &self,
        owner: &Owner,
        before: Option<SessionId>,
        limit: usize,
    ) -> Result<(Vec<SessionRow>, Option<SessionId>), Error> {
        let owner = owner.clone();
        let rows = blocking(self.house.store(), move |store| {
            Ok::<_, Error>(store.sessions(&owner, before, limit + 1)?)
        })
        .await?;
        Ok(page(rows, limit, |row| row.id))
    }

    /// A session's workers, newest first, each with its newest turn.
    pub async fn workers(
        &self,
        owner: &Owner,
        id: SessionId,
        before: Option<SessionId>,
        limit: usize,
    ) -> Result<(Vec<(SessionRow, Option<TurnRow>)>, Option<SessionId>), Error> {
        let live = self.live(owner, id).await?;
        let rows = read(&live, move |store| {
            let workers = store.workers(id, before, limit + 1)?.into_iter();
            let with_turn = workers.map(|worker| {
                let newest = store.turns(worker.id, None, 1)?.pop();
                Ok((worker, newest))
            });
            with_turn.collect::<Result<Vec<_>, Error>>()
        })
        .await?;
        Ok(page(rows, limit, |(worker, _)| worker.id))
    }

    /// A session's turns, newest first.
    pub async fn turns(
        &self,
        owner: &Owner,
        id: SessionId,
        before: Option<TurnId>,
        limit: usize,
    ) -> Result<(Vec<TurnRow>, Option<TurnId>), Error> {
        let live = self.live(owner, id).await?;
        let rows = read(&live, move |store| {
            Ok(store.turns(id, before, limit + 1)?)
        })
        .await?;
        Ok(page(rows, limit, |row| row.id))
    }

    /// One turn.
    pub async fn turn(&self, owner: &Owner, id: TurnId) -> Result<TurnRow, Error> {
        let found = blocking(self.house.store(), move |store| {
            Ok::<_, Error>(store.turn(id)?)
        })
        .await?;
        found
            .filter(|(of, _)| of == owner)
            .map(|(_, row)| row)
            .ok_or(Error::TurnNotFound)
    }

    /// A session's messages, the newest page first, each page oldest first.
    pub async fn messages(
        &self,
        owner: &Owner,
        id: SessionId,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<(Vec<Message>, Option<MessageId>), Error> {
        let live = self.live(owner, id).await?;
        let (in_flight, upto) = live
            .ring
            .look(|transcript, tail, _| (transcript.in_flight().map(|message| message.id), tail));
        let mut messages = match before {
            None => live.snapshot(limit + 1).await?.messages,
            Some(before) => {
                let stored = read(&live, move |store| {
                    // The message in flight is not stored: before it is everything that is.
                    let before = Some(before).filter(|before| in_flight != Some(*before));
                    if let Some(before) = before {
                        store.message(id, before)?.ok_or(Error::MessageNotFound)?;
                    }
                    Ok(store.messages(id, View::Clients, upto, before, limit + 1)?)
                })
                .await?;
                stored.into_iter().map(|stored| stored.message).collect()
            }
        };
        let more = messages.len() > limit;
        if more {
            messages.remove(0);
        }
        let next = messages.first().filter(|_| more).map(|message| message.id);
        Ok((messages, next))
    }

    /// How often each status was emitted: in all, and on each of the last 30 days (S1-073).
    pub async fn status_counts(&self) -> Result<Vec<StatusCount>, Error> {
        const DAYS: i64 = 30;
        let now = self.house.clock.now().as_millis();
        let since = Timestamp::from_millis(now - (DAYS - 1) * 24 * 3600 * 1000);
        blocking(self.house.store(), move |store| {
            Ok::<_, Error>(store.status_counts(since)?)
        })
        .await
    }

    /// A session's tool calls, newest first.
    pub async fn tool_calls(
        &self,
        owner: &Owner,
        id: SessionId,
        before: Option<ToolUseId>,
        limit: usize,
    ) -> Result<(Vec<ToolCallRow>, Option<ToolUseId>), Error> {
        let live = self.live(owner, id).await?;
        let rows = read(&live, move |store| {
            Ok(store.tool_calls(id, before, limit + 1)?)
        })
        .await?;
        Ok(page(rows, limit, |row| row.tool_use_id))
    }

    /// A session's model calls, newest first.
    pub async fn llm_calls(
        &self,
        owner: &Owner,
        id: SessionId,
        before: Option<CallId>,
        limit: usize,
    ) -> Result<(Vec<LlmCallRow>, Option<CallId>), Error> {
        let live = self.live(owner, id).await?;
        let rows = read(&live, move |store| {
            Ok(store.llm_calls(id, before, limit + 1)?)
        })
        .await?;
        Ok(page(rows, limit, |row| row.call_id))
    }

    /// What a tenant's model calls came to from the first day to the last, by day and model; at
    /// most `limit` rows, the oldest. Whose sessions they were in within the tenant is not told.
    pub async fn usage(
        &self,
        tenant: TenantId,
        days: (Day, Day),
        limit: usize,
    ) -> Result<Vec<UsageDay>, Error> {
        blocking(self.house.store(), move |store| {
            Ok::<_, Error>(store.usage(Some(tenant), days, limit)?)
        })
        .await
    }

    /// Today, by the clock that events are labelled with.
    pub fn today(&self) -> Day {
        Day::of(self.house.clock.now())
    }

    /// A session's log.
    pub async fn events(
        &self,
        owner: &Owner,
        id: SessionId,
        query: EventsQuery,
    ) -> Result<EventPage, Error> {
        let live = self.live(owner, id).await?;
        loop {
            let (tail, query) = (live.ring.look(|_, tail, _| tail), query.clone());
            let from_start = query.since.is_none();
            match read(&live, move |store| page_of(store, id, tail, &query)).await {
                // Trimmed between two looks: the beginning is somewhere else now.
                Err(Error::CursorExpired) if from_start => {}
                result => return result,
            }
        }
    }
}

fn page_of(
    store: &dyn Store,
    id: SessionId,
    tail: Position,
    query: &EventsQuery,
) -> Result<EventPage, Error> {
    let low = store.tail(id)?.ok_or(Error::SessionNotFound)?.low;
    let after = match query.since {
        None => low,
        Some(since) if since.epoch != tail.epoch || since > tail || since.seq < low => {
            return Err(Error::CursorExpired);
        }
        Some(since) => since.seq,
    };
    let previous_hash = store.hash_at(id, after)?;
    let events = select(store, id, (after, tail.seq), query)?;
    let last = events.last().map_or(tail.seq, |event| event.seq);
    let more = events.len() == query.limit && last < tail.seq;
    Ok(EventPage {
        next: more.then_some(Position::persisted(tail.epoch, last)),
        events,
        previous_hash,
    })
}

/// Events read at once when only some types are wanted: most of a page may be others.
const SCAN: usize = 256;

/// Up to `limit` events of the wanted types, reading page by page.
fn select(
    store: &dyn Store,
    id: SessionId,
    (mut after, upto): (Seq, Seq),
    query: &EventsQuery,
) -> Result<Vec<StoredEvent>, Error> {
    let mut out = Vec::new();
    while after < upto && out.len() < query.limit {
        let page = store.events(id, after, upto, query.limit.max(SCAN))?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        let wanted = |event: &StoredEvent| {
            query
                .types
                .is_none_or(|types| types.contains(event.head.kind))
        };
        out.extend(page.into_iter().filter(wanted));
    }
    out.truncate(query.limit);
    Ok(out)
}

/// Reads for a session; a damaged record closes it for everyone.
async fn read<T: Send + 'static>(
    live: &Arc<LiveSession>,
    read: impl FnOnce(&dyn Store) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let result = blocking(live.house.store(), read).await;
    if matches!(result, Err(Error::Quarantined)) {
        live.quarantine();
    }
    result
}
