//! Batches for tests: the appends of one session as the sequencer would make them, chained.

use std::time::Duration;

use bytes::Bytes;
use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::code::{OnDisconnect, TurnKind};
use turnwire_event::row::{PlacedChange, RowChange, SessionRow, TurnSettings};
use turnwire_event::{
    Actor, Body, EpisodeId, Epoch, Event, EventType, Owner, Position, Seq, SessionId, TenantId,
    Timestamp, TurnId, Ulid,
};

use crate::chain::ChainHash;
use crate::log::Log;
use crate::maintenance::{PieceBudget, TrimCursor};
use crate::record::{EventRecord, LeaseTerm, SessionAppend};

pub(crate) fn owner(principal: &str) -> Owner {
    Owner {
        tenant: TenantId(0),
        principal: principal.parse().expect("a principal"),
    }
}

pub(crate) fn session_row(id: u128, principal: &str) -> SessionRow {
    SessionRow {
        agent: None,
        id: SessionId(Ulid(id)),
        owner: owner(principal),
        parent: None,
        workspace_path: None,
        metadata: turnwire_event::JsonObject::default(),
        episode_id: EpisodeId(Ulid(id)),
        active_model: "scripted:default".into(),
        routing_policy_version: "1".into(),
        cost_usd: 0.0,
        turn_count: 0,
        created_at: Timestamp::from_millis(1),
        updated_at: Timestamp::from_millis(1),
    }
}

/// The position of the persisted event `seq` in the first epoch.
pub(crate) fn at(seq: u64) -> Position {
    Position::persisted(Epoch(1), Seq(seq))
}

/// Builds the appends of one session. Event `n` has the time of `n * 10` milliseconds.
pub(crate) struct BatchBuilder {
    pub(crate) session: SessionId,
    pub(crate) seq: Seq,
    pub(crate) hash: ChainHash,
    /// The bytes of every event so far: event `n` is at `n - 1`.
    pub(crate) bytes: Vec<Bytes>,
}

impl BatchBuilder {
    pub(crate) fn new(id: u128) -> Self {
        let session = SessionId(Ulid(id));
        Self {
            session,
            seq: Seq(0),
            hash: ChainHash::seed(session),
            bytes: Vec::new(),
        }
    }

    fn record(&mut self, comment: &str) -> EventRecord {
        self.seq = self.seq.next();
        let time = Timestamp::from_millis(self.seq.0 as i64 * 10);
        let event = Event {
            response_id: None,
            id: at(self.seq.0),
            session_id: self.session,
            turn_id: None,
            actor: Actor::USER,
            timestamp: time,
            trace: None,
            render: None,
            sub_agent_id: None,
            body: Body::FeedbackRecorded(FeedbackRecorded {
                message_id: None,
                turn_id: None,
                rating: "1".into(),
                comment: Some(comment.into()),
            }),
        };
        let bytes = Bytes::from(event.to_bytes());
        self.hash = self.hash.next(&bytes);
        self.bytes.push(bytes.clone());
        EventRecord {
            seq: self.seq,
            kind: EventType::FeedbackRecorded,
            turn: None,
            actor: Actor::USER,
            time,
            hidden: false,
            hash: self.hash,
            bytes,
        }
    }

    fn append(
        &self,
        prev: Seq,
        records: Vec<EventRecord>,
        rows: Vec<PlacedChange>,
    ) -> SessionAppend {
        SessionAppend {
            session: self.session,
            term: LeaseTerm(0),
            prev,
            records,
            rows,
        }
    }

    /// An append of `count` events, with the session's row if it is the first.
    pub(crate) fn events(&mut self, count: usize) -> SessionAppend {
        let prev = self.seq;
        let records = (0..count)
            .map(|n| self.record(&format!("comment {n}")))
            .collect();
        let mut rows = Vec::new();
        if prev == Seq(0) {
            let row = session_row(self.session.0.0, "local");
            rows.push(self.placed(RowChange::SessionPut(Box::new(row))));
        }
        self.append(prev, records, rows)
    }

    /// An append of one event with a row change.
    pub(crate) fn event_with(&mut self, change: RowChange) -> SessionAppend {
        let mut append = self.events(1);
        append.rows.push(self.placed(change));
        append
    }

    /// An append of row changes alone.
    pub(crate) fn rows(&self, changes: Vec<RowChange>) -> SessionAppend {
        let rows = changes.into_iter().map(|change| self.placed(change));
        self.append(self.seq, Vec::new(), rows.collect())
    }

    /// A row change at the last event.
    pub(crate) fn placed(&self, change: RowChange) -> PlacedChange {
        PlacedChange {
            at: at(self.seq.0),
            time: Timestamp::from_millis(self.seq.0 as i64 * 10),
            change,
        }
    }

    pub(crate) fn turn_started(&mut self, turn: TurnId) -> SessionAppend {
        let mut append = self.event_with(turn_started(turn, None));
        append.records[0].turn = Some(turn);
        append
    }

    pub(crate) fn turn_ended(&mut self, turn: TurnId) -> SessionAppend {
        let mut append = self.event_with(RowChange::TurnEnded {
            turn_id: turn,
            terminal: EventType::TurnCompleted,
            payload: "{}".into(),
        });
        append.records[0].turn = Some(turn);
        append.records[0].kind = EventType::TurnCompleted;
        append
    }
}

/// The start of a turn, which may resume another.
pub(crate) fn turn_started(turn: TurnId, resumes: Option<TurnId>) -> RowChange {
    RowChange::TurnStarted {
        settings: TurnSettings {
            turn_id: turn,
            kind: TurnKind::Chat,
            on_disconnect: OnDisconnect::Continue,
            disconnect_grace_ms: 0,
            trace: None,
            wire_version: Some("0.5".into()),
        },
        agent_definition: "1".into(),
        resumes,
    }
}

/// A whole sweep of the retention, in pieces of `rows` rows: each trimmed session with its last mark.
pub(crate) fn sweep(log: &dyn Log, before_ms: i64, rows: usize) -> Vec<(SessionId, Seq)> {
    let budget = PieceBudget {
        rows,
        time: Duration::from_secs(60),
        ..PieceBudget::default()
    };
    let mut marks: Vec<(SessionId, Seq)> = Vec::new();
    let mut cursor = TrimCursor::START;
    loop {
        let before = Timestamp::from_millis(before_ms);
        let piece = log.trim(before, cursor, &budget).expect("a trim");
        for (session, mark) in piece.trimmed {
            marks.retain(|(other, _)| *other != session);
            marks.push((session, mark));
        }
        match piece.next {
            Some(next) => cursor = next,
            None => return marks,
        }
    }
}
