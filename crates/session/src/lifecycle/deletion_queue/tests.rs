//! Deletions whose steps and failures the test chooses.

use std::path::Path;

use turnwire_event::port::{BoundTurn, HistoryBudget, TurnInput, TurnProducer};
use turnwire_event::row::{PlacedChange, RowChange};
use turnwire_event::{Epoch, Owner, Position, Seq, TenantId, Ulid};
use turnwire_log::reserve::DiskReserve;
use turnwire_log::sqlite::{CommitDurability, SqliteOptions, SqliteStore};
use turnwire_log::{LogWriter, SessionAppend};

use super::*;
use crate::clock::{SystemClock, SystemIdGenerator};
use crate::handle::service::{ServiceParts, SessionService};
use crate::options::Options;
use crate::submit::request::NewSession;

type Answer = oneshot::Receiver<Result<(), Error>>;

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

/// A service with one session, and a registry beside that of the service.
struct TestBench {
    service: SessionService,
    services: Arc<SessionServices>,
    registry: Arc<SessionRegistry>,
    id: SessionId,
}

fn owner() -> Owner {
    Owner {
        tenant: TenantId(0),
        principal: "local".parse().expect("a principal"),
    }
}

impl TestBench {
    async fn start(dir: &Path) -> Self {
        let options = SqliteOptions {
            dir: dir.to_owned(),
            durability: CommitDurability::Relaxed,
        };
        let store = Arc::new(SqliteStore::open(&options).expect("a store"));
        let reserve = DiskReserve::new(dir.join("reserve"), 0);
        let writer = LogWriter::start(store.clone(), reserve, Box::new(|_| {}));
        let parts = ServiceParts {
            options: Options::default(),
            clock: Arc::new(SystemClock),
            id_generator: Arc::new(SystemIdGenerator),
            store,
            writer: writer.expect("a writer"),
            producer: Arc::new(NoProducer),
            tracer: None,
        };
        let service = SessionService::start(parts).await.expect("a service");
        let new = NewSession::default();
        let created = service.writer().create(&owner(), new).await;
        let id = created.expect("a session").id;
        let live = service.live_sessions().open(&owner(), id).await;
        Self {
            services: live.expect("a session").services.clone(),
            service,
            registry: Arc::default(),
            id,
        }
    }

    async fn load(&self, id: SessionId) -> Arc<LiveSession> {
        let loaded = self.registry.open(&self.services, id, None);
        loaded.await.expect("a session")
    }

    /// Stores a worker of the session.
    fn add_worker(&self) -> SessionId {
        let mut row = self.services.new_session(SessionId(Ulid(7)), &owner());
        row.parent = Some(self.id);
        let (session, time) = (row.id, row.created_at);
        let rows = vec![PlacedChange {
            at: Position::persisted(Epoch(1), Seq(0)),
            time,
            change: RowChange::SessionPut(Box::new(row)),
        }];
        let append = SessionAppend {
            session,
            term: Default::default(),
            prev: Seq(0),
            records: Vec::new(),
            rows,
        };
        self.services.store.append(&[append]).expect("an append");
        session
    }

    fn deletion(&self, live: &Arc<LiveSession>) -> (SessionDeletion, Answer) {
        let (done, answer) = oneshot::channel();
        let deletion = SessionDeletion {
            live: live.clone(),
            registry: self.registry.clone(),
            on_deleted: None,
            done: Some(done),
            _slot: None,
            stage: DeletionStage::Waiting,
            audit: None,
            closed: Vec::new(),
        };
        (deletion, answer)
    }

    fn prepare(&self, deletion: &mut SessionDeletion) -> Option<DeletionStep> {
        let mut probe = DiskProbe {
            services: &self.services,
            is_writable: false,
        };
        deletion.prepare(&mut probe).expect("space and no damage")
    }

    fn is_loaded(&self, live: &Arc<LiveSession>) -> bool {
        let loaded = self.registry.get(live.id);
        loaded.is_some_and(|loaded| Arc::ptr_eq(&loaded, live))
    }
}

#[tokio::test]
async fn second_deletion_on_a_full_disk_leaves_the_session_closed() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = TestBench::start(dir.path()).await;
    for is_watched in [false, true] {
        let live = stage.load(stage.id).await;
        if is_watched {
            live.presence.enter();
        }
        let (mut first, mut first_answer) = stage.deletion(&live);
        let (mut second, mut second_answer) = stage.deletion(&live);
        if is_watched {
            let told = stage.prepare(&mut first).expect("a step");
            assert!(told.sessions.is_empty() && !live.ring.is_closed());
        }
        assert!(stage.prepare(&mut first).is_some());
        assert!(stage.prepare(&mut second).is_some());
        assert!(second.fail(&AppendError::Full).is_none());
        assert_eq!(second_answer.try_recv(), Ok(Err(Error::StorageFull)));
        assert!(stage.is_loaded(&live), "left to the first");
        let repeated = first.fail(&AppendError::Full);
        assert_eq!(repeated.is_some(), is_watched, "what it ended is lost");
        assert_eq!(stage.is_loaded(&live), is_watched);
        let refused = Ok(Err(Error::StorageFull));
        assert_eq!(first_answer.try_recv() == refused, !is_watched);
    }
}

#[tokio::test]
async fn second_deletion_deletes_what_the_first_closed() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = TestBench::start(dir.path()).await;
    let live = stage.load(stage.id).await;
    let (mut first, _first_answer) = stage.deletion(&live);
    let (mut second, mut answer) = stage.deletion(&live);
    stage.prepare(&mut first);
    let step = stage.prepare(&mut second).expect("a step");
    assert_eq!(step.sessions, [stage.id]);
    assert!(second.complete(step).is_none());
    assert_eq!(answer.try_recv(), Ok(Ok(())));
}

#[tokio::test]
async fn failed_deletion_leaves_a_session_that_was_loaded_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = TestBench::start(dir.path()).await;
    for error in [AppendError::Full, AppendError::Refused("a page".to_owned())] {
        let live = stage.load(stage.id).await;
        let (mut deletion, _answer) = stage.deletion(&live);
        stage.prepare(&mut deletion);
        stage.registry.remove(stage.id);
        let again = stage.load(stage.id).await;
        assert!(deletion.fail(&error).is_none());
        assert!(stage.is_loaded(&again));
    }
}

#[tokio::test]
async fn workers_of_a_refused_deletion_are_loaded_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = TestBench::start(dir.path()).await;
    let id = stage.add_worker();
    for is_watched in [false, true] {
        let (live, worker) = (stage.load(stage.id).await, stage.load(id).await);
        if is_watched {
            worker.presence.enter();
        }
        let (mut deletion, mut answer) = stage.deletion(&live);
        let step = stage.prepare(&mut deletion).expect("a step");
        assert!(step.sessions.is_empty());
        assert_eq!(worker.ring.is_closed(), !is_watched, "told before");
        let mut deletion = deletion.complete(step).expect("a next step");
        if is_watched {
            let closed = stage.prepare(&mut deletion).expect("a step");
            deletion = deletion.complete(closed).expect("a next step");
        }
        assert!(worker.ring.is_closed());
        let step = stage.prepare(&mut deletion).expect("a step");
        assert_eq!(step.sessions, [id, stage.id]);
        assert!(
            deletion
                .fail(&AppendError::Refused("a page".to_owned()))
                .is_none()
        );
        assert_eq!(answer.try_recv(), Ok(Err(Error::Quarantined)));
        assert!(!stage.is_loaded(&live) && !stage.is_loaded(&worker));
        assert!(!stage.load(id).await.ring.is_closed());
        let is_quarantined = stage.services.quarantined.lock().contains(&id);
        assert_eq!(
            is_quarantined, is_watched,
            "only if closing it ended something"
        );
    }
}

#[tokio::test]
async fn deletion_in_a_lost_folder_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let (data, away) = (dir.path().join("data"), dir.path().join("away"));
    std::fs::create_dir(&data).expect("a folder");
    let stage = TestBench::start(&data).await;
    let live = stage.load(stage.id).await;
    // One deletion comes when the folder is lost, one has waited for the writer.
    let (mut waiting, mut answer) = stage.deletion(&live);
    std::fs::rename(&data, &away).expect("moved");
    let writer = stage.service.writer();
    let refused = writer.delete(&owner(), stage.id).await;
    assert_eq!(refused, Err(Error::FolderLost));
    assert!(stage.prepare(&mut waiting).is_none());
    assert_eq!(answer.try_recv(), Ok(Err(Error::FolderLost)));
    assert!(!live.ring.is_closed());
    std::fs::rename(&away, &data).expect("moved back");
    let deleted = writer.delete(&owner(), stage.id).await;
    assert_eq!(deleted, Ok(()));
}
