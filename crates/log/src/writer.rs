//! The writer: one thread that commits what all sequencers have given, together.
//!
//! It takes every batch that is waiting, writes them in one transaction, and only then lets each
//! sequencer release. What it does when the disk says no:
//!
//! ```text
//!   full     roll back, keep the batch and its numbers, give up the reserve, try each second
//!   busy     someone else has the file: the same, without giving anything up
//!   failed   end the process (the owner's `fatal`): nothing after this could be trusted
//!   refused  write session by session; the one at fault is quarantined, the others commit
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use turnwire_event::metric;

use crate::error::AppendError;
use crate::record::Append;
use crate::reserve::Reserve;
use crate::store::Store;

/// Something that has events to write. The writer holds it only while it is queued.
pub(crate) trait Source: Send + Sync {
    /// Everything given since the last call; none if there is nothing.
    fn take(&self) -> Option<Append>;
    /// What `take` gave is durable.
    fn committed(&self, batch: &Append);
    /// What `take` gave can never be written.
    fn quarantined(&self);
}

/// A task for the writing thread, in order with the batches. Called again if the disk is full or
/// the file is busy; a failed disk ends the process as with a batch.
pub type Task = Box<dyn FnMut(&dyn Store) -> Result<(), AppendError> + Send>;

enum Job {
    Batch(Arc<dyn Source>),
    Task(Task),
}

/// Sessions in one group commit; each brings what its outbox holds. More wait for the next.
const GROUP_SESSIONS_MAX: usize = 4096;
const RETRY: Duration = Duration::from_secs(1);

/// What the owner of the writer is told.
#[derive(Debug, Default)]
pub struct Health {
    full: AtomicBool,
}

impl Health {
    /// Whether the disk is full; no new turn should start.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<(VecDeque<Job>, bool)>,
    wake: Condvar,
}

/// The handle: gives jobs to the thread, and ends it.
pub struct Writer {
    queue: Arc<Queue>,
    health: Arc<Health>,
    store: Arc<dyn Store>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread. `fatal` is called when the disk failed and must not return.
    pub fn start(
        store: Arc<dyn Store>,
        reserve: Reserve,
        fatal: Box<dyn Fn(&str) + Send>,
    ) -> std::io::Result<Arc<Self>> {
        let queue = Arc::new(Queue::default());
        let health = Arc::new(Health::default());
        if let Err(error) = reserve.hold() {
            tracing::warn!(%error, "no room for the reserve file: new turns are refused until there is");
            health.full.store(true, Ordering::Release);
            metrics::gauge!(metric::LOG_STORAGE_FULL).set(1.0);
        }
        let work = Loop {
            queue: queue.clone(),
            store: store.clone(),
            reserve,
            health: health.clone(),
            fatal,
        };
        let thread = std::thread::Builder::new()
            .name("turnwire-writer".into())
            .spawn(move || work.run())?;
        Ok(Arc::new(Self {
            queue,
            health,
            store,
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// What the owner should know.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// The store behind it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn enqueue(&self, source: Arc<dyn Source>) {
        self.push(Job::Batch(source));
    }

    /// Queues many at once, so that they are written in one commit.
    pub(crate) fn enqueue_all(&self, sources: Vec<Arc<dyn Source>>) {
        self.queue
            .jobs
            .lock()
            .0
            .extend(sources.into_iter().map(Job::Batch));
        self.queue.wake.notify_one();
    }

    /// Runs `task` on the writing thread, after every batch queued before.
    pub fn run(&self, task: Task) {
        self.push(Job::Task(task));
    }

    fn push(&self, job: Job) {
        self.queue.jobs.lock().0.push_back(job);
        self.queue.wake.notify_one();
    }

    /// Writes what is queued, closes the store, ends the thread.
    pub fn stop(&self) {
        self.queue.jobs.lock().1 = true;
        self.queue.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("health", &self.health)
            .finish_non_exhaustive()
    }
}

struct Loop {
    queue: Arc<Queue>,
    store: Arc<dyn Store>,
    reserve: Reserve,
    health: Arc<Health>,
    fatal: Box<dyn Fn(&str) + Send>,
}

type Taken = Vec<(Arc<dyn Source>, Append)>;

impl Loop {
    fn run(self) {
        // A panic here would leave everyone waiting for commits that never come.
        let body = std::panic::AssertUnwindSafe(|| self.work());
        if std::panic::catch_unwind(body).is_err() {
            (self.fatal)("the writer broke");
        }
    }

    fn work(&self) {
        let events = metrics::counter!(metric::LOG_EVENTS_TOTAL);
        let commits = metrics::counter!(metric::LOG_COMMITS_TOTAL);
        let times = metrics::histogram!(metric::LOG_COMMIT_MS);
        let mut looked = Instant::now();
        // Tasks that found the disk full: batches go first, each of these is tried once a second.
        let mut put_off: VecDeque<Task> = VecDeque::new();
        while let Some((taken, tasks)) = self.next(!put_off.is_empty()) {
            if !taken.is_empty() {
                let started = Instant::now();
                let count: usize = taken.iter().map(|(_, append)| append.records.len()).sum();
                self.commit(taken);
                times.record(started.elapsed().as_secs_f64() * 1e3);
                commits.increment(1);
                events.increment(count as u64);
            }
            put_off.extend(tasks.into_iter().filter_map(|task| self.perform(task)));
            if looked.elapsed() >= RETRY {
                looked = Instant::now();
                put_off = put_off
                    .into_iter()
                    .filter_map(|task| self.perform(task))
                    .collect();
                if self.health.is_full() {
                    self.recover();
                }
            }
        }
        self.store.close();
    }

    /// Tries a task once; gives it back if it must wait for room or for the file.
    fn perform(&self, mut task: Task) -> Option<Task> {
        match task(self.store.as_ref()) {
            Ok(()) => None,
            Err(AppendError::Fatal(what)) => {
                (self.fatal)(&what);
                None
            }
            Err(error @ (AppendError::Full | AppendError::Busy)) => {
                if matches!(error, AppendError::Full) {
                    self.note_full();
                }
                Some(task)
            }
            Err(error) => {
                tracing::error!(%error, "a task of the writer was refused");
                None
            }
        }
    }

    fn note_full(&self) {
        if !self.health.full.swap(true, Ordering::AcqRel) {
            tracing::error!(
                "the disk is full: new turns are refused, running turns use the reserve"
            );
            metrics::gauge!(metric::LOG_STORAGE_FULL).set(1.0);
        }
        self.reserve.release();
    }

    /// The next group: everything that waits, up to a bound; tasks come after the batches that
    /// were queued before them. None when the writer was stopped and nothing is left.
    fn next(&self, put_off: bool) -> Option<(Taken, Vec<Task>)> {
        let mut jobs = self.queue.jobs.lock();
        while jobs.0.is_empty() {
            if jobs.1 {
                return None;
            }
            if !put_off && !self.health.is_full() {
                self.queue.wake.wait(&mut jobs);
            } else if self.queue.wake.wait_for(&mut jobs, RETRY).timed_out() {
                return Some((Vec::new(), Vec::new())); // a look at the disk is due
            }
        }
        let mut sources = Vec::new();
        let mut tasks = Vec::new();
        while let Some(job) = jobs.0.pop_front() {
            match job {
                Job::Batch(source) if tasks.is_empty() => sources.push(source),
                batch @ Job::Batch(_) => {
                    jobs.0.push_front(batch);
                    break;
                }
                Job::Task(task) => tasks.push(task),
            }
            if sources.len() >= GROUP_SESSIONS_MAX {
                break;
            }
        }
        drop(jobs);
        let taken = sources
            .into_iter()
            .filter_map(|source| source.take().map(|append| (source, append)))
            .collect();
        Some((taken, tasks))
    }

    fn commit(&self, taken: Taken) {
        let (sources, batch): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
        match self.append(&batch) {
            Ok(()) => {
                for (source, append) in sources.iter().zip(&batch) {
                    source.committed(append);
                }
            }
            Err(error) => {
                tracing::error!(%error, "a group commit was refused: writing session by session");
                for (source, append) in sources.iter().zip(&batch) {
                    match self.append(std::slice::from_ref(append)) {
                        Ok(()) => source.committed(append),
                        Err(error) => {
                            tracing::error!(%error, session = %append.session, "session quarantined");
                            source.quarantined();
                        }
                    }
                }
            }
        }
    }

    fn append(&self, batch: &[Append]) -> Result<(), AppendError> {
        self.persist(|| self.store.append(batch))
    }

    /// Writes, waiting out a full disk and a busy file; what comes back as an error can never be
    /// written. Gives up only when the writer was told to stop: then nobody is left to tell.
    fn persist(
        &self,
        mut write: impl FnMut() -> Result<(), AppendError>,
    ) -> Result<(), AppendError> {
        let mut gave_up_reserve = false;
        loop {
            let waits = match write() {
                Ok(()) => return Ok(()),
                Err(AppendError::Fatal(what)) => {
                    (self.fatal)(&what);
                    return Err(AppendError::Fatal(what));
                }
                Err(error @ AppendError::Full) => {
                    self.note_full();
                    // At once with the room just given up, then once a second.
                    std::mem::replace(&mut gave_up_reserve, true).then_some(error)
                }
                Err(error @ AppendError::Busy) => {
                    tracing::warn!("another process holds the database: waiting");
                    Some(error)
                }
                Err(error) => return Err(error),
            };
            if let Some(error) = waits {
                if self.queue.jobs.lock().1 {
                    return Err(error);
                }
                std::thread::sleep(RETRY);
            }
        }
    }

    /// Takes the reserve back if there is room again.
    fn recover(&self) {
        if self.reserve.hold().is_ok() {
            tracing::info!("there is room on the disk again");
            metrics::gauge!(metric::LOG_STORAGE_FULL).set(0.0);
            self.health.full.store(false, Ordering::Release);
        }
    }
}
