//! Turnwire's append: a sequencer a session on one writer and one SQLite store, durability full.
//!
//! An append here makes the order, the envelope and the hash, commits, and releases to a sink
//! that drops; it resolves when `Sequencer::committed` does.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use turnwire_event::body::{feedback::FeedbackRecorded, session::SessionCreated};
use turnwire_event::envelope::EventEnvelope;
use turnwire_event::row::{RowChange, SessionRow};
use turnwire_event::{
    Actor, Body, Clock, EpisodeId, Epoch, EventType, Owner, Position, Seq, SessionId, TenantId,
    Timestamp, TurnId, Ulid,
};
use turnwire_log::chain::ChainHash;
use turnwire_log::reserve::DiskReserve;
use turnwire_log::sequencer::OutboxBounds;
use turnwire_log::sqlite::{CommitDurability, SqliteOptions, SqliteStore};
use turnwire_log::{
    EventDraft, EventSink, LogTail, LogWriter, OutboxRoom, ReleasedEvent, Sequencer,
};

use super::{Appender, EVENT_BYTES};

/// Milliseconds since the run began: events need labels, not the date.
struct Elapsed(Instant);

impl Clock for Elapsed {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.elapsed().as_millis() as i64)
    }
}

/// Drops released events: there is no subscriber.
struct NoSubscriber;

impl EventSink for NoSubscriber {
    fn publish(&self, events: &mut Vec<ReleasedEvent>) {
        events.clear();
    }

    fn quarantined(&self) {}
}

/// Sessions on one store.
#[derive(Debug)]
pub struct SequencedAppender {
    sequencers: Vec<Arc<Sequencer>>,
    body: Body,
    writer: Arc<LogWriter>,
}

impl SequencedAppender {
    /// Opens a new store in `dir` and makes the sessions.
    pub async fn open(dir: &Path, sessions: usize) -> io::Result<Self> {
        let options = SqliteOptions {
            dir: dir.to_owned(),
            durability: CommitDurability::Full,
        };
        let store = SqliteStore::open(&options).map_err(io::Error::other)?;
        let reserve = DiskReserve::new(dir.join("reserve"), 16 << 20);
        let fatal = Box::new(|what: &str| panic!("the disk failed: {what}"));
        let writer = LogWriter::start(Arc::new(store), reserve, fatal)?;
        let clock: Arc<dyn Clock> = Arc::new(Elapsed(Instant::now()));
        let mut sequencers = Vec::with_capacity(sessions);
        for number in 1..=sessions {
            let id = SessionId(Ulid(number as u128));
            let hash = ChainHash::seed(id);
            let tail = LogTail {
                epoch: Epoch::FIRST,
                seq: Seq(0),
                hash,
                time: clock.now(),
                low: Seq(0),
                low_hash: hash,
            };
            let sequencer = Sequencer::open(
                id,
                tail,
                OutboxBounds::default(),
                clock.clone(),
                writer.clone(),
                Arc::new(NoSubscriber),
            );
            sequencer
                .emit_one(created(id)?, OutboxRoom::Reserved)
                .map_err(io::Error::other)?;
            sequencers.push(sequencer);
        }
        for sequencer in &sequencers {
            sequencer
                .committed(Seq(1))
                .await
                .map_err(io::Error::other)?;
        }
        Ok(Self {
            sequencers,
            body: feedback(),
            writer,
        })
    }
}

impl Appender for SequencedAppender {
    async fn append(&self, session: usize) -> io::Result<()> {
        let sequencer = &self.sequencers[session];
        let draft = EventDraft::new(None, Actor::USER, self.body.clone());
        let (at, _) = sequencer
            .emit_one(draft, OutboxRoom::Bounded)
            .map_err(io::Error::other)?;
        sequencer.committed(at.seq).await.map_err(io::Error::other)
    }
}

impl Drop for SequencedAppender {
    fn drop(&mut self) {
        self.writer.stop();
    }
}

/// The first event of a session, with its row.
fn created(id: SessionId) -> io::Result<EventDraft> {
    let zero = Timestamp::from_millis(0);
    let episode_id = EpisodeId(id.0);
    let row = SessionRow {
        agent: None,
        id,
        owner: Owner {
            tenant: TenantId(0),
            principal: "local".parse().map_err(io::Error::other)?,
        },
        parent: None,
        workspace_path: None,
        metadata: turnwire_event::JsonObject::default(),
        episode_id,
        active_model: "none".to_owned(),
        routing_policy_version: "1".to_owned(),
        cost_usd: 0.0,
        turn_count: 0,
        created_at: zero,
        updated_at: zero,
    };
    let body = Body::SessionCreated(SessionCreated {
        workspace_path: None,
        episode_id,
    });
    let mut draft = EventDraft::new(None, Actor::USER, body);
    draft.rows = vec![RowChange::SessionPut(Box::new(row))];
    Ok(draft)
}

/// A feedback whose stored bytes are `EVENT_BYTES` long, envelope and all.
fn feedback() -> Body {
    let with = |comment: String| {
        Body::FeedbackRecorded(FeedbackRecorded {
            message_id: None,
            turn_id: Some(TurnId(Ulid(1))),
            rating: "up".to_owned(),
            comment: Some(comment),
        })
    };
    let bare = stored_bytes(&with(String::new()));
    with("x".repeat(EVENT_BYTES.saturating_sub(bare)))
}

fn stored_bytes(body: &Body) -> usize {
    let (mut payload, mut event) = (Vec::new(), Vec::new());
    body.write(&mut payload);
    let envelope = EventEnvelope {
        response_id: None,
        id: Position::persisted(Epoch::FIRST, Seq(1)),
        kind: EventType::FeedbackRecorded,
        session_id: SessionId(Ulid(1)),
        turn_id: None,
        actor: &Actor::USER,
        timestamp: "1970-01-01T00:00:00.000Z",
        trace: None,
        render: None,
        sub_agent_id: None,
    };
    envelope.write(&payload, &mut event);
    event.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_events_match_reference_length() {
        assert_eq!(stored_bytes(&feedback()), EVENT_BYTES);
    }
}
