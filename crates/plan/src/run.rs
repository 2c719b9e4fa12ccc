//! Driving a step: one future a slot, each on its own task and with its own deadline.
//!
//! Ends come in the order they happen. Dropping a `Run` stops every task it started.

use std::collections::HashMap;
use std::future::Future;

use tokio::task::{Id, JoinSet};
use tokio::time::timeout;
use turnwire_event::body::plan::StepCompleted;

use crate::step::{Expected, Key, Revision, Said, SlotTaken, Step};

/// The work of one slot.
pub struct Work<F> {
    /// Which slot, and how long it may take.
    pub expected: Expected,
    /// What fills it: `Ok` if it was filled, `Err` if not.
    pub future: F,
}

/// How the work of a slot ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended<T, E> {
    /// It filled its slot.
    Filled(T),
    /// It did not.
    Failed(E),
    /// It panicked.
    Broke,
    /// Its deadline passed; it was stopped.
    TimedOut,
}

/// The end of one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End<T, E> {
    /// Which slot.
    pub key: Key,
    /// How.
    pub ended: Ended<T, E>,
}

/// A step at work.
pub struct Run<T, E> {
    step: Step,
    tasks: JoinSet<Option<Result<T, E>>>,
    running: HashMap<Id, Key>,
}

impl<T: Send + 'static, E: Send + 'static> Run<T, E> {
    /// Begins the work of all slots at once.
    pub fn start<F>(id: impl Into<String>, works: Vec<Work<F>>) -> Result<Self, SlotTaken>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let expected = works.iter().map(|work| work.expected.clone());
        let mut run = Self {
            step: Step::new(id, expected.collect::<Vec<_>>())?,
            tasks: JoinSet::new(),
            running: HashMap::new(),
        };
        for Work { expected, future } in works {
            run.step.take(&expected.key, Revision(0), Said::Begun);
            let limit = expected.deadline;
            let task = async move { timeout(limit, future).await.ok() };
            let id = run.tasks.spawn(task).id();
            run.running.insert(id, expected.key);
        }
        Ok(run)
    }

    /// The next slot to end; none when all have.
    pub async fn next(&mut self) -> Option<End<T, E>> {
        loop {
            let (id, ended) = match self.tasks.join_next_with_id().await? {
                Ok((id, Some(Ok(filled)))) => (id, Ended::Filled(filled)),
                Ok((id, Some(Err(failed)))) => (id, Ended::Failed(failed)),
                Ok((id, None)) => (id, Ended::TimedOut),
                Err(broke) => (broke.id(), Ended::Broke),
            };
            let Some(key) = self.running.remove(&id) else {
                continue;
            };
            self.note(&key, &ended);
            return Some(End { key, ended });
        }
    }

    fn note(&mut self, key: &Key, ended: &Ended<T, E>) {
        let said = match ended {
            Ended::Filled(_) => Said::Success,
            Ended::Failed(_) | Ended::Broke => Said::Error,
            Ended::TimedOut => {
                self.step.expire_slot(key);
                return;
            }
        };
        self.step.take(key, Revision(1), said);
    }

    /// The step's completion: given once, after the last slot has ended.
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

    fn work(name: &str, ms: u64, future: Future) -> Work<Future> {
        Work {
            expected: Expected {
                key: Key {
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
    async fn slots_end_in_their_own_time_and_alone() {
        let begun = Instant::now();
        let mut run = Run::start(
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
        let mut ends = Vec::new();
        while let Some(end) = run.next().await {
            assert_eq!(run.completion().is_some(), ends.len() == 4);
            ends.push((end.key.subagent, end.ended, begun.elapsed().as_millis()));
        }
        assert_eq!(
            ends,
            [
                ("mad".to_owned(), Ended::Broke, 0),
                ("quick".to_owned(), Ended::Filled("soon"), 10),
                ("sad".to_owned(), Ended::Failed("no"), 100),
                ("stuck".to_owned(), Ended::TimedOut, 300),
                ("slow".to_owned(), Ended::Filled("late"), 400),
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

    struct Gone(Arc<AtomicBool>);

    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_a_run_stops_all_of_it() {
        let gone = Arc::new(AtomicBool::new(false));
        let held = Gone(Arc::clone(&gone));
        let stuck = async move {
            let _held = held;
            pending().await
        };
        let mut run = Run::start("s", vec![work("stuck", 9000, stuck.boxed())]).expect("one key");
        assert!(timeout(Duration::from_millis(5), run.next()).await.is_err());
        drop(run);
        tokio::task::yield_now().await;
        assert!(gone.load(Ordering::SeqCst));
    }
}
