//! The writer: one thread that commits the batches of all sequencers together (group commit).
//!
//! The thread takes every waiting batch, appends them in one transaction, and then tells each
//! sequencer that its batch is durable. By the error of the append:
//!
//! ```text
//!   Full     keep the batch and its numbers, remove the reserve file, retry every second
//!   Busy     another process has locked the file: retry every second
//!   Fatal    end the process (`fatal`): the state of the file is unknown
//!   Refused  append session by session; the refused one is quarantined, the others commit
//! ```
//!
//! Background tasks (retention, removal, vacuum) run piece by piece behind the batches: a piece
//! begins when no batch waits, or when it was due for `BACKGROUND_PATIENCE`, and pieces take a
//! fifth of the thread's time at most.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use turnwire_event::metric;

use crate::error::AppendError;
use crate::log::Log;
use crate::maintenance::Progress;
use crate::record::SessionAppend;
use crate::reserve::DiskReserve;

/// A producer of batches. The writer holds it only while it is queued.
pub(crate) trait BatchSource: Send + Sync {
    /// Takes the events and rows since the last call; `None` if there are none.
    fn take(&self) -> Option<SessionAppend>;
    /// Called when `batch`, which [`take`](Self::take) returned and whose write began at `began`, is
    /// durable.
    fn committed(&self, batch: &SessionAppend, began: Instant);
    /// Called when the batch can never be written.
    fn quarantined(&self);
}

/// A write for the writer thread, in order with the batches. Called again after
/// [`AppendError::Full`] and [`AppendError::Busy`]; [`AppendError::Fatal`] ends the process.
pub type WriteTask = Box<dyn FnMut() -> Result<(), AppendError> + Send>;

/// One kind of background work: each call is a piece, until it returns [`Progress::Done`]. After
/// [`Progress::Later`] other tasks go on. A piece that fails with [`AppendError::Full`] or
/// [`AppendError::Busy`] is tried again later.
pub type BackgroundTask = Box<dyn FnMut() -> Result<Progress, AppendError> + Send>;

struct NamedTask {
    name: &'static str,
    task: BackgroundTask,
    /// When the task may run: the time when it was queued, or later after [`Progress::Later`].
    ready: Instant,
}

enum WriteJob {
    Batch(Arc<dyn BatchSource>),
    Task(WriteTask),
}

/// Sessions in one group commit, each with all that its outbox holds; others wait for the next.
const GROUP_SESSIONS_MAX: usize = 4096;
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long a background piece that is due lets batches go first.
const BACKGROUND_PATIENCE: Duration = Duration::from_millis(200);
/// The pause after a background piece, in multiples of its duration.
const BACKGROUND_REST: u32 = 4;
/// The shortest pause after a background piece.
const BACKGROUND_REST_MIN: Duration = Duration::from_millis(2);
/// How long a task waits after [`Progress::Later`]: a checkpoint takes some 10 ms, and a reader in
/// another process may prevent it for hours.
const LATER_INTERVAL: Duration = Duration::from_millis(100);

/// The state of the disk as the thread of a [`LogWriter`] sees it.
#[derive(Debug, Default)]
pub struct DiskHealth {
    full: AtomicBool,
}

impl DiskHealth {
    /// True while the disk is full: no new turn should start.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }
}

#[derive(Default)]
struct JobQueue {
    state: Mutex<JobQueueState>,
    wake: Condvar,
}

#[derive(Default)]
struct JobQueueState {
    jobs: VecDeque<WriteJob>,
    /// Background tasks; the one that was ready first runs next.
    background: Vec<NamedTask>,
    /// The name of the background task that runs.
    running: Option<&'static str>,
    stopped: bool,
}

impl JobQueue {
    fn extend(&self, jobs: impl IntoIterator<Item = WriteJob>) {
        self.state.lock().jobs.extend(jobs);
        self.wake.notify_one();
    }
}

impl JobQueueState {
    /// The index of the background task that runs next, and when it is ready.
    fn next_background(&self) -> Option<(usize, Instant)> {
        let ready = self.background.iter().map(|named| named.ready).enumerate();
        ready.min_by_key(|(_, ready)| *ready)
    }
}

/// The handle of the writer thread. Dropping it does not end the thread; [`stop`](Self::stop) does.
pub struct LogWriter {
    queue: Arc<JobQueue>,
    health: Arc<DiskHealth>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl LogWriter {
    /// Starts the thread, which appends to `log`. `fatal` is called with the cause when the disk has
    /// failed, and must not return.
    pub fn start(
        log: Arc<dyn Log>,
        reserve: DiskReserve,
        fatal: Box<dyn Fn(&str) + Send>,
    ) -> std::io::Result<Arc<Self>> {
        let queue = Arc::new(JobQueue::default());
        let health = Arc::new(DiskHealth::default());
        if let Err(error) = reserve.acquire() {
            tracing::warn!(%error, "no disk space for the reserve file: new turns are refused until there is");
            health.full.store(true, Ordering::Release);
            metrics::gauge!(metric::LOG_STORAGE_FULL).set(1.0);
        }
        let worker = WriterThread {
            queue: queue.clone(),
            log,
            reserve,
            health: health.clone(),
            fatal,
        };
        let thread = std::thread::Builder::new()
            .name("turnwire-writer".into())
            .spawn(move || worker.run())?;
        Ok(Arc::new(Self {
            queue,
            health,
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// The state of the disk.
    pub fn health(&self) -> &Arc<DiskHealth> {
        &self.health
    }

    pub(crate) fn enqueue(&self, source: Arc<dyn BatchSource>) {
        self.queue.extend([WriteJob::Batch(source)]);
    }

    /// Queues several sources at once, so that one commit writes them.
    pub(crate) fn enqueue_all(&self, sources: Vec<Arc<dyn BatchSource>>) {
        self.queue.extend(sources.into_iter().map(WriteJob::Batch));
    }

    /// Runs `task` on the writer thread, after every batch that was queued before.
    pub fn run(&self, task: WriteTask) {
        self.queue.extend([WriteJob::Task(task)]);
    }

    /// Runs `task` on the writer thread, piece by piece, behind the batches. Returns false and drops
    /// it if a task of this name is queued or runs; a stopped writer drops what is left.
    pub fn run_background(&self, name: &'static str, task: BackgroundTask) -> bool {
        let mut state = self.queue.state.lock();
        let is_queued = state.background.iter().any(|queued| queued.name == name);
        if is_queued || state.running == Some(name) {
            return false;
        }
        let ready = Instant::now();
        state.background.push(NamedTask { name, task, ready });
        drop(state);
        self.queue.wake.notify_one();
        true
    }

    /// Writes what is queued, closes the log and joins the thread.
    pub fn stop(&self) {
        self.queue.state.lock().stopped = true;
        self.queue.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("health", &self.health)
            .finish_non_exhaustive()
    }
}

/// The body of the writer thread.
struct WriterThread {
    queue: Arc<JobQueue>,
    log: Arc<dyn Log>,
    reserve: DiskReserve,
    health: Arc<DiskHealth>,
    fatal: Box<dyn Fn(&str) + Send>,
}

/// The batches of one group commit, each with its source.
type Group = Vec<(Arc<dyn BatchSource>, SessionAppend)>;

/// What the thread does next.
enum NextWork {
    Jobs(Group, Vec<WriteTask>),
    Background(NamedTask),
}

impl WriterThread {
    fn run(self) {
        // After a panic every sequencer would wait for commits that never come.
        let body = std::panic::AssertUnwindSafe(|| self.process_jobs());
        if std::panic::catch_unwind(body).is_err() {
            (self.fatal)("the writer thread panicked");
        }
    }

    fn process_jobs(&self) {
        let events = metrics::counter!(metric::LOG_EVENTS_TOTAL);
        let commits = metrics::counter!(metric::LOG_COMMITS_TOTAL);
        let commit_time = metrics::histogram!(metric::LOG_COMMIT_SECONDS);
        let mut last_retry = Instant::now();
        // Tasks to retry once a second; batches go before them.
        let mut deferred: VecDeque<WriteTask> = VecDeque::new();
        let mut background_due = Instant::now();
        while let Some(work) = self.next(!deferred.is_empty(), background_due) {
            let (group, tasks) = match work {
                NextWork::Jobs(group, tasks) => (group, tasks),
                NextWork::Background(task) => {
                    background_due = self.run_piece(task);
                    continue;
                }
            };
            if !group.is_empty() {
                let started = Instant::now();
                let count: usize = group.iter().map(|(_, append)| append.records.len()).sum();
                self.commit(group);
                commit_time.record(started.elapsed());
                commits.increment(1);
                events.increment(count as u64);
            }
            deferred.extend(tasks.into_iter().filter_map(|task| self.run_task(task)));
            if last_retry.elapsed() >= RETRY_INTERVAL {
                last_retry = Instant::now();
                deferred = deferred
                    .into_iter()
                    .filter_map(|task| self.run_task(task))
                    .collect();
                if self.health.is_full() {
                    self.restore_reserve();
                }
            }
        }
        self.log.close();
    }

    /// Runs a piece of a background task; returns when the next piece is due.
    fn run_piece(&self, mut named: NamedTask) -> Instant {
        let started = Instant::now();
        let result = (named.task)();
        let took = started.elapsed();
        metrics::histogram!(metric::LOG_BACKGROUND_SECONDS, "task" => named.name).record(took);
        let mut rest = (took * BACKGROUND_REST).max(BACKGROUND_REST_MIN);
        named.ready = Instant::now();
        let is_done = match result {
            Ok(Progress::Done) => true,
            Ok(Progress::More) => false,
            Ok(Progress::Later) => {
                named.ready += LATER_INTERVAL;
                false
            }
            Err(AppendError::Fatal(cause)) => {
                (self.fatal)(&cause);
                true
            }
            Err(error @ (AppendError::Full | AppendError::Busy)) => {
                tracing::debug!(%error, task = named.name, "a background task waits");
                rest = RETRY_INTERVAL;
                false
            }
            Err(error) => {
                tracing::error!(%error, task = named.name, "a background task was refused");
                true
            }
        };
        let mut state = self.queue.state.lock();
        state.running = None;
        if !is_done {
            state.background.push(named);
        }
        Instant::now() + rest
    }

    /// Runs a task once; returns it if it is to be retried.
    fn run_task(&self, mut task: WriteTask) -> Option<WriteTask> {
        match task() {
            Ok(()) => None,
            Err(AppendError::Fatal(cause)) => {
                (self.fatal)(&cause);
                None
            }
            Err(error @ (AppendError::Full | AppendError::Busy)) => {
                if matches!(error, AppendError::Full) {
                    self.set_full();
                }
                Some(task)
            }
            Err(error) => {
                tracing::error!(%error, "a task of the writer was refused");
                None
            }
        }
    }

    /// Marks the disk as full and removes the reserve file.
    fn set_full(&self) {
        if !self.health.full.swap(true, Ordering::AcqRel) {
            tracing::error!(
                "the disk is full: new turns are refused, running turns use the reserve"
            );
            metrics::gauge!(metric::LOG_STORAGE_FULL).set(1.0);
        }
        self.reserve.release();
    }

    /// Waits for work: the next group, up to a bound, with the tasks that were queued after it, or a
    /// background piece. Group and tasks are empty when a retry is due; `None` when the writer is
    /// stopped and the queue of jobs is empty.
    fn next(&self, has_deferred: bool, background_due: Instant) -> Option<NextWork> {
        let mut queue = self.queue.state.lock();
        loop {
            let can_run = !queue.stopped && !self.health.is_full();
            let background = queue.next_background().filter(|_| can_run);
            let background = background.map(|(index, ready)| (index, ready.max(background_due)));
            let patience = match queue.jobs.is_empty() {
                true => Duration::ZERO,
                false => BACKGROUND_PATIENCE,
            };
            if let Some((index, due)) = background
                && Instant::now() >= due + patience
            {
                let task = queue.background.remove(index);
                queue.running = Some(task.name);
                return Some(NextWork::Background(task));
            }
            if !queue.jobs.is_empty() {
                break;
            }
            if queue.stopped {
                return None;
            }
            let wake = &self.queue.wake;
            let retries = has_deferred || self.health.is_full();
            if let Some((_, due)) = background.filter(|_| !retries) {
                wake.wait_until(&mut queue, due);
            } else if !retries {
                wake.wait(&mut queue);
            } else if wake.wait_for(&mut queue, RETRY_INTERVAL).timed_out() {
                return Some(NextWork::Jobs(Vec::new(), Vec::new()));
            }
        }
        let mut sources = Vec::new();
        let mut tasks = Vec::new();
        while let Some(job) = queue.jobs.pop_front() {
            match job {
                WriteJob::Batch(source) if tasks.is_empty() => sources.push(source),
                batch @ WriteJob::Batch(_) => {
                    queue.jobs.push_front(batch);
                    break;
                }
                WriteJob::Task(task) => tasks.push(task),
            }
            if sources.len() >= GROUP_SESSIONS_MAX {
                break;
            }
        }
        drop(queue);
        let group = sources
            .into_iter()
            .filter_map(|source| source.take().map(|append| (source, append)))
            .collect();
        Some(NextWork::Jobs(group, tasks))
    }

    /// Appends a group in one transaction, or session by session if it is refused.
    fn commit(&self, group: Group) {
        let (sources, batch): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let began = Instant::now();
        match self.append(&batch) {
            Ok(()) => {
                for (source, append) in sources.iter().zip(&batch) {
                    source.committed(append, began);
                }
            }
            Err(error) => {
                tracing::error!(%error, "a group commit was refused: appending session by session");
                for (source, append) in sources.iter().zip(&batch) {
                    match self.append(std::slice::from_ref(append)) {
                        Ok(()) => source.committed(append, began),
                        Err(error) => {
                            tracing::error!(%error, session = %append.session, "session quarantined");
                            metrics::counter!(metric::SESSION_DAMAGED_TOTAL).increment(1);
                            source.quarantined();
                        }
                    }
                }
            }
        }
    }

    /// Appends a batch, retrying while the disk is full or the file is locked. An error means that
    /// the batch can never be written, or that the writer was stopped during the retries.
    fn append(&self, batch: &[SessionAppend]) -> Result<(), AppendError> {
        let mut released_reserve = false;
        loop {
            let retry = match self.log.append(batch) {
                Ok(()) => return Ok(()),
                Err(AppendError::Fatal(cause)) => {
                    (self.fatal)(&cause);
                    return Err(AppendError::Fatal(cause));
                }
                Err(error @ AppendError::Full) => {
                    self.set_full();
                    // At once with the space of the reserve file, then every second.
                    std::mem::replace(&mut released_reserve, true).then_some(error)
                }
                Err(error @ AppendError::Busy) => {
                    tracing::warn!("another process has locked the database: retrying");
                    Some(error)
                }
                Err(error) => return Err(error),
            };
            if let Some(error) = retry {
                if self.queue.state.lock().stopped {
                    return Err(error);
                }
                std::thread::sleep(RETRY_INTERVAL);
            }
        }
    }

    /// Creates the reserve file again if the disk has free space.
    fn restore_reserve(&self) {
        if self.reserve.acquire().is_ok() {
            tracing::info!("the disk has free space again");
            metrics::gauge!(metric::LOG_STORAGE_FULL).set(0.0);
            self.health.full.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests;
