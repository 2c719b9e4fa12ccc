//! A stored session: its log, and every message, also those that no client sees.

use std::collections::{BTreeSet, HashMap};

use anyhow::Result;
use turnwire_event::row::StoredMessage;
use turnwire_event::{Body, Event, MessageId, Position, Seq, SessionId};
use turnwire_log::sqlite::SqliteStore;
use turnwire_log::{LogTail, MessageRecords as _, MessageView};

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
        Self::read_upto(store, session, tail(store, session)?)
    }

    /// Reads the events and messages up to `tail`, and none that a server appends meanwhile.
    fn read_upto(store: &SqliteStore, session: SessionId, tail: LogTail) -> Result<Self> {
        let mut events = Vec::new();
        let mut since = None;
        loop {
            let page = folder_page(store, session, &tail, since)?;
            page.check_damage()?;
            // Events of types that this program does not know are skipped.
            let read = page.events.iter();
            events.extend(read.filter_map(|(bytes, _)| Event::read(bytes).ok()));
            since = page.next.map(|at| at.seq);
            if since.is_none() {
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

#[cfg(test)]
mod tests {
    use super::*;

    use bytes::Bytes;
    use turnwire_event::body::session::SessionCreated;
    use turnwire_event::row::{PlacedChange, RowChange, SessionRow};
    use turnwire_event::{Actor, EpisodeId, Epoch, Owner, TenantId, Timestamp, Ulid};
    use turnwire_log::chain::ChainHash;
    use turnwire_log::sqlite::{CommitDurability, SqliteOptions};
    use turnwire_log::{EventRecord, LeaseTerm, Log as _, SessionAppend};

    const SESSION: SessionId = SessionId(Ulid(1));
    const EPISODE: EpisodeId = EpisodeId(Ulid(3));
    const TIME: Timestamp = Timestamp::from_millis(1_000);

    /// Appends the event after `prev`, and the session's row before the first event.
    fn append(store: &SqliteStore, prev: u64) {
        let at = Position::persisted(Epoch::FIRST, Seq(prev + 1));
        let event = Event {
            response_id: None,
            id: at,
            session_id: SESSION,
            turn_id: None,
            actor: Actor::USER,
            timestamp: TIME,
            trace: None,
            render: None,
            sub_agent_id: None,
            body: Body::SessionCreated(SessionCreated {
                workspace_path: None,
                episode_id: EPISODE,
            }),
        };
        let bytes = Bytes::from(event.to_bytes());
        let tail = store.tail(SESSION).expect("a readable store");
        let hash = tail.map_or(ChainHash::seed(SESSION), |tail| tail.hash);
        let row = SessionRow {
            agent: None,
            id: SESSION,
            owner: Owner {
                tenant: TenantId(0),
                principal: "local".parse().expect("a principal"),
            },
            parent: None,
            workspace_path: None,
            metadata: turnwire_event::JsonObject::default(),
            episode_id: EPISODE,
            active_model: "m".into(),
            routing_policy_version: "1".into(),
            cost_usd: 0.0,
            turn_count: 0,
            created_at: TIME,
            updated_at: TIME,
        };
        let change = PlacedChange {
            at,
            time: TIME,
            change: RowChange::SessionPut(Box::new(row)),
        };
        let append = SessionAppend {
            session: SESSION,
            term: LeaseTerm::default(),
            prev: Seq(prev),
            records: vec![EventRecord {
                seq: at.seq,
                kind: event.body.kind(),
                turn: None,
                actor: event.actor,
                time: TIME,
                hidden: false,
                hash: hash.next(&bytes),
                bytes,
            }],
            rows: Vec::from_iter((prev == 0).then_some(change)),
        };
        store.append(&[append]).expect("room on the disk");
    }

    #[test]
    fn events_after_the_first_tail_are_left_out() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&SqliteOptions {
            dir: dir.path().to_owned(),
            durability: CommitDurability::Full,
        })
        .expect("a new store");
        append(&store, 0);
        append(&store, 1);
        let first_tail = tail(&store, SESSION).expect("a session");
        append(&store, 2);
        let numbers = |read: StoredSession| -> Vec<u64> {
            read.events.iter().map(|event| event.id.seq.0).collect()
        };
        let read = StoredSession::read_upto(&store, SESSION, first_tail).expect("a session");
        assert_eq!(numbers(read), [1, 2]);
        let read = StoredSession::read(&store, SESSION).expect("a session");
        assert_eq!(numbers(read), [1, 2, 3]);
    }
}
