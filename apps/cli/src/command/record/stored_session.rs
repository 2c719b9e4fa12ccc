//! A session as it is stored: its log, and every message, those on no wire too.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context as _, Result, bail};
use turnwire_event::row::StoredMessage;
use turnwire_event::{Body, Event, MessageId, Position, Seq, SessionId};
use turnwire_log::sqlite::SqliteStore;
use turnwire_log::{EventSelection, Log as _, MessageRecords as _, MessageView, ReadError};

/// How many events are read at once.
const PAGE: usize = 512;

pub(super) struct StoredSession {
    pub(super) events: Vec<Event>,
    /// How many events retention has taken.
    pub(super) trimmed: u64,
    /// What clients are shown, oldest first.
    pub(super) shown: Vec<StoredMessage>,
    /// What the one that speaks is shown of the past, oldest first.
    pub(super) heard: Vec<StoredMessage>,
    /// Each sub-agent's own messages, oldest first.
    pub(super) own: HashMap<String, Vec<StoredMessage>>,
}

impl StoredSession {
    /// Reads all of it.
    pub(super) fn read(store: &SqliteStore, session: SessionId) -> Result<Self> {
        let tail = store.tail(session)?;
        let tail = tail.context("there is no such session in this folder")?;
        let mut events = Vec::new();
        let mut at = tail.low;
        while at < tail.seq {
            let page = match store.read(session, at, tail.seq, &EventSelection::all(), PAGE) {
                Err(ReadError::Damaged { seq, .. }) => {
                    bail!("record {seq} does not match its hash; see `turnwire verify`")
                }
                page => page?,
            };
            let Some(last) = page.last() else {
                break;
            };
            at = last.seq;
            // A type that is newer than this program says nothing here.
            events.extend(page.iter().filter_map(|one| Event::read(&one.bytes).ok()));
        }
        let start = Position::persisted(tail.epoch, Seq(0));
        let read =
            |view: MessageView<'_>| store.messages_since(session, view, start, tail.position());
        let mut own = HashMap::new();
        for id in sub_agents(&events) {
            let messages = read(MessageView::Agent(&id))?;
            own.insert(id, messages);
        }
        Ok(Self {
            trimmed: tail.low.0,
            shown: read(MessageView::Clients)?,
            heard: read(MessageView::Orchestrator)?,
            own,
            events,
        })
    }

    /// A message, whoever it is for.
    pub(super) fn message(&self, id: MessageId) -> Option<&StoredMessage> {
        let own = self.own.values().flatten();
        let all = self.shown.iter().chain(&self.heard).chain(own);
        all.into_iter().find(|one| one.message.id == id)
    }
}

/// The sub-agents that were asked.
fn sub_agents(events: &[Event]) -> BTreeSet<String> {
    let sub_agents = events.iter().filter_map(|event| match &event.body {
        Body::SubagentStarted(started) => Some(started.sub_agent_id.clone()),
        _ => None,
    });
    sub_agents.collect()
}
