//! A session on a real store and ring, whose writer steps under control of the test.

use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::port::{BoundTurn, HistoryBudget, TurnInput, TurnProducer};
use turnwire_event::row::{RowChange, SessionRow};
use turnwire_event::{
    EpisodeId, Epoch, Event, Owner, Position, Seq, SessionId, Sub, TenantId, Timestamp, Ulid,
};
use turnwire_hub::WakePump;
use turnwire_log::chain::ChainHash;
use turnwire_log::reserve::DiskReserve;
use turnwire_log::sqlite::{CommitDurability, SqliteOptions, SqliteStore};
use turnwire_log::{
    EventRecord, EventSink as _, LeaseTerm, LogTail, LogWriter, ReleasedEvent, SessionAppend, Store,
};

use crate::clock::trusted::TrustedClock;
use crate::clock::{SystemClock, SystemIdGenerator};
use crate::history::budget::HistoryCacheBudget;
use crate::live::routing_policy::ActiveRoutingPolicy;
use crate::live::session::{LiveSession, SessionServices};
use crate::live::turn_runner::TurnRunner;
use crate::metering::quota::{QuotaLimits, Quotas};
use crate::options::Options;
use crate::store_read::ReadSlots;
use crate::submit::write_slots::WriteSlots;

/// A producer that is never called: these tests start no turn.
struct NoProducer;

impl TurnProducer for NoProducer {
    fn history(&self) -> HistoryBudget {
        HistoryBudget {
            messages_max: 0,
            bytes_max: 0,
        }
    }
    fn bind(&self, _: &TurnInput) -> BoundTurn {
        unreachable!("no turn starts in these tests")
    }
}

/// One atomic step of the writer.
#[derive(Clone)]
pub(super) enum WriteStep {
    Commit(Vec<Event>, Vec<(Position, RowChange)>),
    Publish(Vec<Event>),
}

/// A position in the first epoch.
pub(super) fn at(seq: u64, sub: u32) -> Position {
    Position {
        epoch: Epoch(1),
        seq: Seq(seq),
        sub: Sub(sub),
    }
}

/// A session under test.
pub(super) struct ReplayStage {
    pub(super) live: Arc<LiveSession>,
    store: Arc<dyn Store>,
    hash: ChainHash,
    seq: Seq,
    first: bool,
    row: SessionRow,
}

impl ReplayStage {
    pub(super) fn new(services: &Arc<SessionServices>, id: u128) -> Self {
        let session = SessionId(Ulid(id));
        let owner = Owner {
            tenant: TenantId(0),
            principal: "local".parse().expect("a principal"),
        };
        let row = SessionRow {
            agent: None,
            id: session,
            owner,
            parent: None,
            workspace_path: None,
            metadata: turnwire_event::JsonObject::default(),
            episode_id: EpisodeId(Ulid(1)),
            active_model: "m".into(),
            routing_policy_version: "1".into(),
            cost_usd: 0.0,
            turn_count: 0,
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
        };
        let tail = LogTail::first(session, Timestamp::from_millis(0));
        let live = LiveSession::load(services.clone(), (row.clone(), 0), tail, None);
        Self {
            live,
            store: services.store.clone(),
            hash: tail.hash,
            seq: tail.seq,
            first: true,
            row,
        }
    }

    /// Runs one step of the writer.
    pub(super) fn step(&mut self, step: &WriteStep) {
        match step {
            WriteStep::Commit(events, rows) => self.commit(events, rows),
            WriteStep::Publish(events) => {
                let mut released = events.iter().map(released).collect();
                self.live.ring.publish(&mut released);
            }
        }
    }

    fn commit(&mut self, events: &[Event], rows: &[(Position, RowChange)]) {
        let prev = self.seq;
        let records = events
            .iter()
            .map(|event| {
                let bytes = Bytes::from(event.to_bytes());
                self.hash = self.hash.next(&bytes);
                self.seq = event.id.seq;
                EventRecord {
                    seq: event.id.seq,
                    kind: event.body.kind(),
                    turn: event.turn_id,
                    actor: event.actor.clone(),
                    time: event.timestamp,
                    hidden: false,
                    hash: self.hash,
                    bytes,
                }
            })
            .collect();
        let time = Timestamp::from_millis(5_000);
        let mut placed: Vec<_> = rows
            .iter()
            .map(|(at, change)| turnwire_event::row::PlacedChange {
                at: *at,
                time,
                change: change.clone(),
            })
            .collect();
        if std::mem::take(&mut self.first) {
            let change = RowChange::SessionPut(Box::new(self.row.clone()));
            placed.push(turnwire_event::row::PlacedChange {
                at: at(1, 0),
                time,
                change,
            });
        }
        let append = SessionAppend {
            session: self.live.id,
            term: LeaseTerm(0),
            prev,
            records,
            rows: placed,
        };
        self.store.append(&[append]).expect("an append");
    }
}

fn released(event: &Event) -> ReleasedEvent {
    ReleasedEvent {
        head: event.head(),
        time: event.timestamp,
        bytes: Bytes::from(event.to_bytes()),
        body: event.body.clone(),
        trace: None,
    }
}

/// The services of sessions on a store in `dir`.
pub(super) fn services(dir: &std::path::Path) -> Arc<SessionServices> {
    let options = SqliteOptions {
        dir: dir.to_owned(),
        durability: CommitDurability::Relaxed,
    };
    let store = Arc::new(SqliteStore::open(&options).expect("a store"));
    let writer = LogWriter::start(
        store.clone(),
        DiskReserve::new(dir.join("reserve"), 0),
        Box::new(|_| {}),
    )
    .expect("a writer");
    let options = Options::default();
    let clock = Arc::new(SystemClock);
    Arc::new(SessionServices {
        trusted_clock: TrustedClock::load(clock.clone(), store.as_ref(), options.retention)
            .expect("a clock"),
        options,
        clock,
        id_generator: Arc::new(SystemIdGenerator),
        store,
        writer,
        pump: WakePump::start(),
        ring_budget: turnwire_hub::RingBudget::start(256 << 20),
        history_budget: HistoryCacheBudget::new(64 << 20),
        runner: TurnRunner::new(
            Arc::new(NoProducer),
            tokio::runtime::Handle::current(),
            &Options::default(),
        ),
        reads: ReadSlots::new(&Options::default()),
        writes: WriteSlots::new(&Options::default()),
        quotas: Quotas::new(QuotaLimits::default(), QuotaLimits::default()),
        routing_policy: parking_lot::Mutex::new(ActiveRoutingPolicy::new("builtin-1")),
        on_deleted: Default::default(),
        delegates: Default::default(),
        response_claims: Default::default(),
        tracer: None,
        quarantined: Default::default(),
    })
}
