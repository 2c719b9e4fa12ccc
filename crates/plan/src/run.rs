//! Runs a [`Step`]: one future per slot, each on its own task and with its own deadline.
//!
//! Slots finish in the order of their futures. Dropping a [`StepRun`] aborts every task it started.

use std::collections::HashMap;
use std::future::Future;

use tokio::task::{Id, JoinSet};
use tokio::time::timeout;
use turnwire_event::body::plan::StepCompleted;

use crate::step::{DuplicateSlot, ExpectedSlot, ResultRevision, SlotKey, SlotReport, Step};

/// The future that fills one slot.
pub struct SlotWork<F> {
    /// The slot and its deadline.
    pub expected: ExpectedSlot,
    /// Resolves to `Ok` if it fills the slot, to `Err` if it does not.
    pub future: F,
}

/// How the future of one slot ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotOutcome<T, E> {
    /// The future resolved to `Ok`.
    Filled(T),
    /// The future resolved to `Err`.
    Failed(E),
    /// The task of the future panicked.
    Panicked,
    /// The deadline passed and the future was dropped.
    TimedOut,
}

/// One slot whose future has ended, from [`StepRun::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedSlot<T, E> {
    /// The slot that [`SlotWork::expected`] named.
    pub key: SlotKey,
    /// The result of the future.
    pub outcome: SlotOutcome<T, E>,
}

/// A [`Step`] whose futures are running.
pub struct StepRun<T, E> {
    step: Step,
    tasks: JoinSet<Option<Result<T, E>>>,
    running: HashMap<Id, SlotKey>,
}

impl<T: Send + 'static, E: Send + 'static> StepRun<T, E> {
    /// Spawns the futures of all slots at once. Fails if two slots have the same [`SlotKey`].
    pub fn start<F>(id: impl Into<String>, works: Vec<SlotWork<F>>) -> Result<Self, DuplicateSlot>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let expected = works.iter().map(|work| work.expected.clone());
        let mut run = Self {
            step: Step::new(id, expected.collect::<Vec<_>>())?,
            tasks: JoinSet::new(),
            running: HashMap::new(),
        };
        for SlotWork { expected, future } in works {
            run.step
                .report(&expected.key, ResultRevision(0), SlotReport::Started);
            let deadline = expected.deadline;
            let task = async move { timeout(deadline, future).await.ok() };
            let id = run.tasks.spawn(task).id();
            run.running.insert(id, expected.key);
        }
        Ok(run)
    }

    /// Waits for the next slot to finish. Returns `None` when all slots have finished.
    pub async fn next(&mut self) -> Option<FinishedSlot<T, E>> {
        loop {
            let (id, ended) = match self.tasks.join_next_with_id().await? {
                Ok((id, Some(Ok(filled)))) => (id, SlotOutcome::Filled(filled)),
                Ok((id, Some(Err(failed)))) => (id, SlotOutcome::Failed(failed)),
                Ok((id, None)) => (id, SlotOutcome::TimedOut),
                Err(panicked) => (panicked.id(), SlotOutcome::Panicked),
            };
            let Some(key) = self.running.remove(&id) else {
                continue;
            };
            self.record(&key, &ended);
            return Some(FinishedSlot {
                key,
                outcome: ended,
            });
        }
    }

    fn record(&mut self, key: &SlotKey, ended: &SlotOutcome<T, E>) {
        let report = match ended {
            SlotOutcome::Filled(_) => SlotReport::Success,
            SlotOutcome::Failed(_) | SlotOutcome::Panicked => SlotReport::Error,
            SlotOutcome::TimedOut => {
                self.step.expire_slot(key);
                return;
            }
        };
        self.step.report(key, ResultRevision(1), report);
    }

    /// The completion of the step. Returned once, after the last slot has finished.
    pub fn completion(&mut self) -> Option<StepCompleted> {
        self.step.completion()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;
    use tokio::time::{Instant, sleep};
    use turnwire_event::code::{SlotStatus, StepStatus};

    use super::*;

    type Future = BoxFuture<'static, Result<&'static str, &'static str>>;

    fn work(name: &str, ms: u64, future: Future) -> SlotWork<Future> {
        SlotWork {
            expected: ExpectedSlot {
                key: SlotKey {
                    subagent: name.into(),
                    result_key: "r".into(),
                },
                deadline: Duration::from_millis(ms),
            },
            future,
        }
    }

    fn after(ms: u64, result: Result<&'static str, &'static str>) -> Future {
        async move {
            sleep(Duration::from_millis(ms)).await;
            result
        }
        .boxed()
    }

    #[tokio::test(start_paused = true)]
    async fn slots_finish_independently_in_order_of_time() {
        let started = Instant::now();
        let mut run = StepRun::start(
            "s",
            vec![
                work("slow", 900, after(400, Ok("late"))),
                work("stuck", 300, pending().boxed()),
                work("mad", 900, async { panic!("mad") }.boxed()),
                work("sad", 900, after(100, Err("no"))),
                work("quick", 20, after(10, Ok("soon"))),
            ],
        )
        .expect("keys differ");
        let mut finished = Vec::new();
        while let Some(end) = run.next().await {
            assert_eq!(run.completion().is_some(), finished.len() == 4);
            finished.push((end.key.subagent, end.outcome, started.elapsed().as_millis()));
        }
        assert_eq!(
            finished,
            [
                ("mad".to_owned(), SlotOutcome::Panicked, 0),
                ("quick".to_owned(), SlotOutcome::Filled("soon"), 10),
                ("sad".to_owned(), SlotOutcome::Failed("no"), 100),
                ("stuck".to_owned(), SlotOutcome::TimedOut, 300),
                ("slow".to_owned(), SlotOutcome::Filled("late"), 400),
            ]
        );
        let statuses: Vec<_> = run.step.slots().map(|(_, status)| status).collect();
        assert_eq!(
            statuses,
            [
                SlotStatus::Success,
                SlotStatus::Timeout,
                SlotStatus::Error,
                SlotStatus::Error,
                SlotStatus::Success
            ]
        );
        assert_eq!(run.step.status(), Some(StepStatus::PartialFailure));
    }

    struct DropFlag(Arc<AtomicBool>);

    impl Drop for DropFlag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_a_run_drops_its_futures() {
        let dropped = Arc::new(AtomicBool::new(false));
        let flag = DropFlag(Arc::clone(&dropped));
        let hanging = async move {
            let _flag = flag;
            pending().await
        };
        let mut run =
            StepRun::start("s", vec![work("stuck", 9000, hanging.boxed())]).expect("one key");
        assert!(timeout(Duration::from_millis(5), run.next()).await.is_err());
        drop(run);
        tokio::task::yield_now().await;
        assert!(dropped.load(Ordering::SeqCst));
    }
}
