//! Where a session's log is read from: a running server, or the data folder itself.
//!
//! Both give the same pages of the same bytes. The folder is opened read-only, beside a running
//! server or without one.

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use turnwire_client::{Client, EventPageQuery};
use turnwire_event::{Message, MessageId, Position, Seq, SessionId};
use turnwire_log::chain::ChainHash;
use turnwire_log::sqlite::SqliteStore;
use turnwire_log::{EventSelection, Log as _, MessageRecords as _, MessageView, ReadError};

/// How many events or messages are read at once.
const PAGE: usize = 200;

/// A place that has the log.
pub(crate) enum SessionSource {
    Server(Client),
    Folder(Box<SqliteStore>),
}

/// A stretch of the log.
pub(crate) struct SourcePage {
    /// The chain's hash before the first event.
    pub(crate) previous: ChainHash,
    /// The events, each with the chain's hash at it.
    pub(crate) events: Vec<(Bytes, ChainHash)>,
    /// Where to go on; none at the end.
    pub(crate) next: Option<Position>,
    /// The number of a record that does not match its hash and cannot be read, if there is one.
    pub(crate) damaged: Option<Seq>,
}

impl SessionSource {
    /// Events after `since`, oldest first.
    pub(crate) async fn events(
        &self,
        session: SessionId,
        since: Option<Position>,
    ) -> Result<SourcePage> {
        match self {
            Self::Server(client) => {
                let query = EventPageQuery {
                    since,
                    limit: Some(PAGE),
                    hashes: true,
                    ..EventPageQuery::default()
                };
                let list = client.records(session).events(query).await?;
                let hashes = list.hashes.unwrap_or_default();
                if hashes.len() != list.events.len() {
                    bail!(
                        "the server sent {} hashes for {} events",
                        hashes.len(),
                        list.events.len()
                    );
                }
                let events = list.events.iter().zip(&hashes);
                Ok(SourcePage {
                    previous: hash(&list.previous_hash.unwrap_or_default())?,
                    events: events
                        .map(|(event, text)| Ok((event.get().to_owned().into(), hash(text)?)))
                        .collect::<Result<_>>()?,
                    next: list.next,
                    damaged: None,
                })
            }
            Self::Folder(store) => folder_page(store, session, since),
        }
    }

    /// Every finished message of the session, newest page first.
    pub(crate) async fn messages(&self, session: SessionId) -> Result<Vec<Message>> {
        let mut all = Vec::new();
        let mut before: Option<MessageId> = None;
        loop {
            let (page, next) = match self {
                Self::Server(client) => {
                    let page = client.records(session).messages(before, Some(PAGE)).await?;
                    (page.messages, page.next)
                }
                Self::Folder(store) => {
                    let tail = store.tail(session)?.context("there is no such session")?;
                    let page = store.messages(
                        session,
                        MessageView::Orchestrator,
                        tail.position(),
                        before,
                        PAGE,
                    )?;
                    let page: Vec<_> = page.into_iter().map(|stored| stored.message).collect();
                    let next = page.first().filter(|_| page.len() == PAGE).map(|m| m.id);
                    (page, next)
                }
            };
            all.extend(page);
            if next.is_none() {
                return Ok(all);
            }
            before = next;
        }
    }
}

fn folder_page(
    store: &SqliteStore,
    session: SessionId,
    since: Option<Position>,
) -> Result<SourcePage> {
    let tail = store
        .tail(session)?
        .context("there is no such session in this folder")?;
    let after = since.map_or(tail.low, |at| at.seq.max(tail.low));
    let previous = store.hash_at(session, after)?;
    let mut limit = PAGE;
    let mut damaged = None;
    let events = loop {
        match store.read(session, after, tail.seq, &EventSelection::all(), limit) {
            Ok(events) => break events,
            // Reads stop at a damaged record: read up to it, then say which one it is.
            Err(ReadError::Damaged { seq, .. }) => {
                damaged = Some(Seq(seq));
                limit = usize::try_from(seq.saturating_sub(after.0 + 1))?;
                if limit == 0 {
                    break Vec::new();
                }
            }
            Err(error) => return Err(error.into()),
        }
    };
    let last = events.last().map_or(after, |event| event.seq);
    let has_more = last < tail.seq && damaged.is_none();
    Ok(SourcePage {
        previous,
        events: events
            .into_iter()
            .map(|event| (event.bytes, ChainHash(event.hash)))
            .collect(),
        next: has_more.then(|| Position::persisted(tail.epoch, last)),
        damaged,
    })
}

/// Reads a hash from its 64 hexadecimal digits.
fn hash(text: &str) -> Result<ChainHash> {
    let mut bytes = [0u8; 32];
    if text.len() != 64 || !text.is_ascii() {
        bail!("the server sent a hash that is none: {text:?}");
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16)?;
    }
    Ok(ChainHash(bytes))
}
