//! A stored session: its log, and every message, also those that no client sees.

use std::collections::{BTreeSet, HashMap};

use anyhow::Result;
use turnwire_event::row::StoredMessage;
use turnwire_event::{Body, Event, MessageId, Position, Seq, SessionId};
use turnwire_log::sqlite::SqliteStore;
use turnwire_log::{MessageRecords as _, MessageView};

use crate::session_source::{folder_page, tail};

pub(super) struct StoredSession {
    pub(super) events: Vec<Event>,
    /// The number of events that retention has removed.
    pub(super) trimmed: u64,
    /// The messages that clients see, oldest first.
    pub(super) shown: Vec<StoredMessage>,
    /// The messages that the orchestrator's model sees, oldest first.
    pub(super) orchestrator: Vec<StoredMessage>,
    /// The messages of each sub-agent, oldest first.
    pub(super) sub_agents: HashMap<String, Vec<StoredMessage>>,
}

impl StoredSession {
    pub(super) fn read(store: &SqliteStore, session: SessionId) -> Result<Self> {
        let tail = tail(store, session)?;
        let mut events = Vec::new();
        let mut since = None;
        loop {
            let page = folder_page(store, session, since)?;
            page.check_damage()?;
            // Events of types that this program does not know are skipped.
            let read = page.events.iter();
            events.extend(read.filter_map(|(bytes, _)| Event::read(bytes).ok()));
            since = page.next;
            if since.is_none_or(|at| at.seq >= tail.seq) {
                break;
            }
        }
        let start = Position::persisted(tail.epoch, Seq(0));
        let read =
            |view: MessageView<'_>| store.messages_since(session, view, start, tail.position());
        let ids: BTreeSet<_> = events.iter().filter_map(started_sub_agent).collect();
        let mut sub_agents = HashMap::new();
        for id in ids {
            sub_agents.insert(id.clone(), read(MessageView::Agent(id))?);
        }
        Ok(Self {
            trimmed: tail.low.0,
            shown: read(MessageView::Clients)?,
            orchestrator: read(MessageView::Orchestrator)?,
            sub_agents,
            events,
        })
    }

    /// A message of any view.
    pub(super) fn message(&self, id: MessageId) -> Option<&StoredMessage> {
        let of_sub_agents = self.sub_agents.values().flatten();
        let mut all = self
            .shown
            .iter()
            .chain(&self.orchestrator)
            .chain(of_sub_agents);
        all.find(|stored| stored.message.id == id)
    }
}

fn started_sub_agent(event: &Event) -> Option<&String> {
    match &event.body {
        Body::SubagentStarted(started) => Some(&started.sub_agent_id),
        _ => None,
    }
}
