//! A session on the real store and ring, stepped by hand.

use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::port::{Bound, HistoryBudget, Producer, TurnInput};
use turnwire_event::row::{RowChange, SessionRow};
use turnwire_event::{
    EpisodeId, Epoch, Event, Owner, Position, Seq, SessionId, Sub, TenantId, Timestamp, Ulid,
};
use turnwire_hub::Pump;
use turnwire_log::chain::Hash;
use turnwire_log::reserve::Reserve;
use turnwire_log::sqlite::{Durability, Options as StoreOptions, Sqlite};
use turnwire_log::{Append, Record, Released, Sink as _, Store, Tail, Term, Writer};

use crate::clock::{SystemClock, SystemMint};
use crate::live::session::{LiveSession, SessionServices, TurnRunner};
use crate::options::Options;

/// Answers no turn: these tests start none.
struct Nobody;

impl Producer for Nobody {
    fn history(&self) -> HistoryBudget {
        HistoryBudget {
            messages_max: 0,
            bytes_max: 0,
        }
    }
    fn bind(&self, _: &TurnInput) -> Bound {
        unreachable!("no turn begins here")
    }
}

/// One atomic step of the writing side.
#[derive(Clone)]
pub(super) enum Write {
    Commit(Vec<Event>, Vec<(Position, RowChange)>),
    Publish(Vec<Event>),
}

/// A place of the first epoch.
pub(super) fn at(seq: u64, sub: u32) -> Position {
    Position {
        epoch: Epoch(1),
        seq: Seq(seq),
        sub: Sub(sub),
    }
}

/// A session under test: real store, real ring, stepped by hand.
pub(super) struct Stage {
    pub(super) live: Arc<LiveSession>,
    store: Arc<dyn Store>,
    hash: Hash,
    seq: Seq,
    first: bool,
    row: SessionRow,
}

impl Stage {
    pub(super) fn new(house: &Arc<SessionServices>, id: u128) -> Self {
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
            metadata: serde_json::Map::new(),
            episode_id: EpisodeId(Ulid(1)),
            active_model: "m".into(),
            routing_policy_version: "1".into(),
            cost_usd: 0.0,
            turn_count: 0,
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
        };
        let tail = Tail::first(session, Timestamp::from_millis(0));
        let live = LiveSession::open(house.clone(), (row.clone(), 0), tail, None);
        Self {
            live,
            store: house.store(),
            hash: tail.hash,
            seq: tail.seq,
            first: true,
            row,
        }
    }

    /// Does what the writer does next.
    pub(super) fn step(&mut self, step: &Write) {
        match step {
            Write::Commit(events, rows) => self.commit(events, rows),
            Write::Publish(events) => {
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
                Record {
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
            .map(|(at, change)| turnwire_event::row::Placed {
                at: *at,
                time,
                change: change.clone(),
            })
            .collect();
        if std::mem::take(&mut self.first) {
            let change = RowChange::SessionPut(Box::new(self.row.clone()));
            placed.push(turnwire_event::row::Placed {
                at: at(1, 0),
                time,
                change,
            });
        }
        let append = Append {
            session: self.live.id,
            term: Term(0),
            prev,
            records,
            rows: placed,
        };
        self.store.append(&[append]).expect("an append");
    }
}

fn released(event: &Event) -> Released {
    Released {
        head: event.head(),
        time: event.timestamp,
        bytes: Bytes::from(event.to_bytes()),
        body: event.body.clone(),
    }
}

/// What sessions share, on a store in `dir`.
pub(super) fn house(dir: &std::path::Path) -> Arc<SessionServices> {
    let options = StoreOptions {
        dir: dir.to_owned(),
        durability: Durability::Relaxed,
    };
    let store = Arc::new(Sqlite::open(&options).expect("a store"));
    let writer = Writer::start(
        store,
        Reserve::new(dir.join("reserve"), 0),
        Box::new(|_| {}),
    )
    .expect("a writer");
    Arc::new(SessionServices {
        options: Options::default(),
        clock: Arc::new(SystemClock),
        mint: Arc::new(SystemMint),
        writer,
        pump: Pump::start(),
        runner: TurnRunner {
            producer: Arc::new(Nobody),
            definition: Default::default(),
            turns: Default::default(),
            runtime: tokio::runtime::Handle::current(),
            draining: Default::default(),
        },
        replays: tokio::sync::Semaphore::new(2),
        policy: parking_lot::Mutex::new(crate::live::routing_policy::ActiveRoutingPolicy::new(
            "builtin-1",
        )),
        erased: Default::default(),
        employer: Default::default(),
        quarantined: Default::default(),
    })
}
