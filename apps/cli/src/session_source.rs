//! The source of a session's log: a running server or a data folder.
//!
//! Both give the same pages of the same bytes. The folder is opened read-only, with or without a
//! running server.

pub(crate) mod rows;

use std::collections::VecDeque;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use turnwire_client::{Client, EventPageQuery};
use turnwire_event::{Message, MessageId, Position, Seq, SessionId, TurnId};
use turnwire_log::chain::ChainHash;
use turnwire_log::sqlite::SqliteStore;
use turnwire_log::{
    EventSelection, Log as _, LogTail, MessageRecords as _, MessageView, PageBounds, ReadError,
    ReadLimits,
};

/// The number of events or messages in a page.
const PAGE: usize = 200;
/// The size of the events or messages that are read from a data folder at once.
const PAGE_BYTES: usize = 4 << 20;

/// A server or a data folder.
pub(crate) enum SessionSource {
    Server(Client),
    Folder(Box<SqliteStore>),
}

/// A page of the log.
pub(crate) struct SourcePage {
    /// The chain's hash before the first event.
    pub(crate) previous: ChainHash,
    /// The events, each with the chain's hash at it.
    pub(crate) events: Vec<(Bytes, ChainHash)>,
    /// The position after which the next page begins; `None` at the end.
    pub(crate) next: Option<Position>,
    /// The number of the record at which the page ends because it does not match its hash.
    pub(crate) damaged: Option<Seq>,
}

impl SourcePage {
    /// Fails if the page ends at a damaged record.
    pub(crate) fn check_damage(&self) -> Result<()> {
        match self.damaged {
            None => Ok(()),
            Some(seq) => bail!(
                "record {} does not match its hash; see `turnwire verify`",
                seq.0
            ),
        }
    }
}

impl SessionSource {
    /// A [`SourcePage`] of events after `since`, oldest first.
    pub(crate) async fn events(
        &self,
        session: SessionId,
        since: Option<Position>,
    ) -> Result<SourcePage> {
        let client = match self {
            Self::Server(client) => client,
            Self::Folder(store) => {
                let tail = tail(store, session)?;
                let since = since.map(|at| at.seq.max(tail.low));
                return folder_page(store, session, &tail, since);
            }
        };
        let query = EventPageQuery {
            since,
            limit: Some(PAGE),
            hashes: true,
            ..EventPageQuery::default()
        };
        let list = client.records(session).events(query).await?;
        let hashes = list.hashes.unwrap_or_default();
        let (sent, expected) = (hashes.len(), list.events.len());
        ensure!(
            sent == expected,
            "the server sent {sent} hashes for {expected} events"
        );
        let events = list.events.iter().zip(&hashes);
        let events = events.map(|(event, hash)| {
            let bytes = Bytes::copy_from_slice(event.get().as_bytes());
            Ok((bytes, parse_hash(hash)?))
        });
        Ok(SourcePage {
            previous: parse_hash(&list.previous_hash.unwrap_or_default())?,
            events: events.collect::<Result<_>>()?,
            next: list.next,
            damaged: None,
        })
    }

    /// The number up to which the events of a session without events are trimmed; a server does not
    /// tell, and has trimmed none that anybody asks for.
    pub(crate) fn low(&self, session: SessionId) -> Result<u64> {
        match self {
            Self::Server(_) => Ok(0),
            Self::Folder(store) => Ok(tail(store, session)?.low.0),
        }
    }

    /// The finished messages of the session, oldest first; with `turn`, only those of the turn,
    /// from the pages that contain it.
    pub(crate) async fn messages(
        &self,
        session: SessionId,
        turn: Option<TurnId>,
    ) -> Result<Vec<Message>> {
        let mut messages: VecDeque<Message> = VecDeque::new();
        let mut before: Option<MessageId> = None;
        loop {
            let (page, next) = match self {
                Self::Server(client) => {
                    let records = client.records(session);
                    let mut page = records.messages(before, Some(PAGE)).await?;
                    for message in &mut page.messages {
                        if message.omitted_bytes.is_some() {
                            *message = records.message(message.id).await?;
                        }
                    }
                    (page.messages, page.next)
                }
                Self::Folder(store) => {
                    let upto = tail(store, session)?.position();
                    let view = MessageView::Orchestrator;
                    let bounds = PageBounds {
                        rows: PAGE,
                        bytes: PAGE_BYTES,
                    };
                    let page = store.messages(session, view, upto, before, bounds)?;
                    let oldest = page.rows.first().filter(|_| page.has_more);
                    let next = oldest.map(|message| message.id);
                    (page.rows, next)
                }
            };
            let selects = |message: &Message| turn.is_none_or(|turn| message.turn_id == turn);
            let has_more = page.first().is_none_or(selects);
            for message in page.into_iter().rev().filter(selects) {
                messages.push_front(message);
            }
            if next.is_none() || !has_more {
                return Ok(messages.into());
            }
            before = next;
        }
    }
}

/// The [`LogTail`] of a session in a data folder.
pub(crate) fn tail(store: &SqliteStore, session: SessionId) -> Result<LogTail> {
    let tail = store.tail(session)?;
    tail.context("there is no such session in this folder")
}

/// A [`SourcePage`] of a data folder: events after `since`, up to `tail`. A server may append
/// meanwhile, so a reader of several pages passes the tail of its first.
pub(crate) fn folder_page(
    store: &SqliteStore,
    session: SessionId,
    tail: &LogTail,
    since: Option<Seq>,
) -> Result<SourcePage> {
    let after = since.unwrap_or(tail.low);
    let limits = ReadLimits {
        events: PAGE,
        bytes: PAGE_BYTES,
        scanned: PAGE,
    };
    let read = |upto: Seq| {
        let batch = store.read(session, after, upto, &EventSelection::all(), limits);
        batch.map(|batch| batch.events)
    };
    let (events, damaged) = match read(tail.seq) {
        // A read fails at a missing or damaged record: read up to it once, and report it.
        Err(ReadError::Damaged { seq, .. }) => {
            let intact = seq.saturating_sub(1);
            let events = match intact > after.0 {
                true => read(Seq(intact))?,
                false => Vec::new(),
            };
            let last = events.last().map_or(after, |event| event.seq);
            // A page that is full before the damage: the next one meets it again.
            let damaged = (last.0 >= intact).then_some(Seq(seq));
            (events, damaged)
        }
        events => (events?, None),
    };
    let last = events.last().map_or(after, |event| event.seq);
    // A page without events ends the log: the next one would be the same.
    let has_more = last > after && last < tail.seq && damaged.is_none();
    let events = events.into_iter();
    Ok(SourcePage {
        previous: store.hash_at(session, after)?,
        events: events
            .map(|event| (event.bytes, ChainHash(event.hash)))
            .collect(),
        next: has_more.then(|| Position::persisted(tail.epoch, last)),
        damaged,
    })
}

/// Parses a [`ChainHash`] of 64 hexadecimal digits.
pub(crate) fn parse_hash(text: &str) -> Result<ChainHash> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    let hash = bytes.and_then(|bytes| bytes.try_into().ok());
    let hash = hash.map(ChainHash);
    hash.with_context(|| format!("an invalid hash: {text:?}"))
}
