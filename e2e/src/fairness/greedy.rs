//! The greedy owner: one load per [`SharedResource`], on a thread and runtime of its own, so that
//! its work does not delay the clients that are measured.
//!
//! A refusal is a right answer to a greedy owner. After one the load pauses briefly, because a
//! client that asks in a tight loop measures the processor and not the resource.

mod load;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::client::{LoadClient, LoadReply};
use super::resource::SharedResource;

/// The pause after a refusal or a failure, much shorter than any `Retry-After`.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest time in which a load reaches its full intensity.
const RAMP_MAX: Duration = Duration::from_secs(25);

/// What the greedy owner got so far; shared by all its tasks.
#[derive(Debug, Default)]
struct GreedyCounts {
    answered: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    /// Set when the load has its full intensity: everything is open, or something was refused.
    ramped: AtomicBool,
}

impl GreedyCounts {
    /// Counts an answer; false if it was refused or failed.
    fn note(&self, answer: &io::Result<LoadReply>) -> bool {
        let counter = match answer {
            Ok(reply) if reply.status < 300 => {
                self.bytes.fetch_add(reply.bytes, Ordering::Relaxed);
                &self.answered
            }
            Ok(reply) if reply.status == 429 => {
                self.ramped.store(true, Ordering::Release);
                &self.refused
            }
            _ => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        std::ptr::eq(counter, &raw const self.answered)
    }

    fn is_ramped(&self) -> bool {
        self.ramped.load(Ordering::Acquire)
    }

    fn note_ramped(&self) {
        self.ramped.store(true, Ordering::Release);
    }

    fn report(&self, seconds: f64) -> GreedyReport {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        GreedyReport {
            answered: read(&self.answered),
            refused: read(&self.refused),
            failed: read(&self.failed),
            bytes: read(&self.bytes),
            seconds,
        }
    }
}

/// What a load was answered, refused and sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct GreedyReport {
    pub answered: u64,
    /// Requests answered with 429.
    pub refused: u64,
    /// Other answers, and requests without one.
    pub failed: u64,
    /// Bytes of all good answers.
    pub bytes: u64,
    pub seconds: f64,
}

impl GreedyReport {
    /// The sum of two reports.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            answered: self.answered + other.answered,
            refused: self.refused + other.refused,
            failed: self.failed + other.failed,
            bytes: self.bytes + other.bytes,
            seconds: self.seconds + other.seconds,
        }
    }
}

/// A load that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct GreedyLoad {
    counts: Arc<GreedyCounts>,
    started: Instant,
    /// Dropping it stops the load.
    halt: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GreedyLoad {
    /// Starts the load on `resource`; `session` is what [`SharedResource::fill`] returned.
    pub fn start(resource: SharedResource, client: LoadClient, session: String) -> Self {
        let counts = Arc::new(GreedyCounts::default());
        let (halt, halted) = oneshot::channel();
        let shared = Arc::clone(&counts);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async move {
                tokio::select! {
                    () = load::run(resource, client, session, shared) => {}
                    _ = halted => {}
                }
            });
            // Open connections are closed by dropping their tasks.
            runtime.shutdown_background();
        });
        Self {
            counts,
            started: Instant::now(),
            halt: Some(halt),
            thread: Some(thread),
        }
    }

    /// Waits until the load has its full intensity, at most some seconds.
    pub async fn ramped(&self) {
        while !self.counts.is_ramped() && self.started.elapsed() < RAMP_MAX {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The counts up to now.
    pub fn report(&self) -> GreedyReport {
        self.counts.report(self.started.elapsed().as_secs_f64())
    }

    /// Stops the load and closes its connections.
    pub fn stop(mut self) -> GreedyReport {
        let report = self.report();
        drop(self.halt.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        report
    }
}

/// Runs `work` again and again; pauses after each that returns false.
async fn repeat<F: Future<Output = bool>>(mut work: impl FnMut() -> F) {
    loop {
        if !work().await {
            tokio::time::sleep(PAUSE).await;
        }
    }
}
