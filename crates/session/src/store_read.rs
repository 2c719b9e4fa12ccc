//! Reads of the store on blocking threads, with a bound on how many run at once, in all and for each
//! owner.
//!
//! A slot belongs to the thread that reads and not to the request: a client that goes away does not
//! free it while the read still runs.

use std::sync::Arc;

use turnwire_event::Owner;
use turnwire_event::row::SessionRow;
use turnwire_fair::{FairLimits, FairSlot, FairSlots};
use turnwire_log::{ReadError, SessionRecords};

use crate::error::Error;
use crate::options::Options;

/// Levels of workers that [`worker_depth`] follows: more than any setting allows.
const LEVELS_MAX: usize = 64;

/// Counts the ancestors of a session: 0 for a person's own session, 1 for its worker.
pub(crate) fn worker_depth(
    store: &dyn SessionRecords,
    row: &SessionRow,
) -> Result<usize, ReadError> {
    let mut parent = row.parent;
    let mut depth = 0;
    while let Some(id) = parent.filter(|_| depth < LEVELS_MAX) {
        depth += 1;
        parent = store.session(id)?.and_then(|row| row.parent);
    }
    Ok(depth)
}

/// Who a read is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reader {
    /// Requests of an owner.
    Owner(Owner),
    /// The turns of an owner, running or about to start from the queue. Requests that wait do not
    /// count here, so that they cannot make an accepted turn fail.
    Turn(Owner),
    /// The server itself: recovery, queues of the last run.
    Server,
}

/// The slots of all reads.
pub(crate) struct ReadSlots {
    reads: Arc<FairSlots<Reader>>,
    /// Chunks of replays: one at once for each core, so that every late reader gets its first events
    /// soon. The connections bound how many wait.
    replays: Arc<FairSlots<Owner>>,
}

impl ReadSlots {
    pub(crate) fn new(options: &Options) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            reads: FairSlots::new(FairLimits {
                total: options.read_slots,
                per_owner: options.read_slots_per_owner,
                // What waits is a request with its connection, or a turn: both are bounded.
                waiting: usize::MAX,
                waiting_per_owner: options.reads_waiting_per_owner,
            }),
            replays: FairSlots::new(FairLimits {
                total: cores,
                per_owner: cores,
                waiting: usize::MAX,
                waiting_per_owner: usize::MAX,
            }),
        }
    }

    /// The share of a reader.
    pub(crate) fn share(&self, reader: Reader) -> ReadShare {
        ReadShare {
            slots: self.reads.clone(),
            reader,
        }
    }

    /// Waits for the slot of one chunk of a replay.
    pub(crate) async fn replay_slot(&self, owner: &Owner) -> Result<FairSlot<Owner>, Error> {
        let slot = self.replays.acquire(owner).await;
        slot.map_err(|_| Error::TooManyReads)
    }
}

/// The read slots of one [`Reader`].
#[derive(Clone)]
pub(crate) struct ReadShare {
    slots: Arc<FairSlots<Reader>>,
    reader: Reader,
}

impl ReadShare {
    /// Runs `read` on a blocking thread once there is a slot for it. Fails if too many reads of the
    /// same reader wait.
    pub(crate) async fn read<S, T, E>(
        &self,
        store: Arc<S>,
        read: impl FnOnce(&S) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        S: ?Sized + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let slot = self.slots.acquire(&self.reader).await;
        let slot = slot.map_err(|_| Error::TooManyReads)?;
        read_with(slot, store, read).await
    }
}

/// Runs `read` on a blocking thread, which frees `slot` when it is done.
pub(crate) async fn read_with<S, T, E>(
    slot: impl Send + 'static,
    store: Arc<S>,
    read: impl FnOnce(&S) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    S: ?Sized + Send + Sync + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let task = tokio::task::spawn_blocking(move || {
        let result = read(store.as_ref());
        drop(slot);
        result
    });
    match task.await {
        Ok(result) => result,
        Err(_) => Err(Error::Internal.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    use turnwire_event::TenantId;

    fn named(name: &str) -> Owner {
        Owner {
            tenant: TenantId(0),
            principal: name.parse().expect("a principal"),
        }
    }

    fn owner(name: &str) -> Reader {
        Reader::Owner(named(name))
    }

    #[tokio::test]
    async fn abandoned_read_keeps_its_slot_until_it_is_done() {
        let slots = ReadSlots::new(&Options {
            read_slots: 2,
            read_slots_per_owner: 1,
            reads_waiting_per_owner: 1,
            ..Options::default()
        });
        let (go, gate) = mpsc::channel::<()>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let share = slots.share(owner("greedy"));
        let read = {
            let share = share.clone();
            tokio::spawn(async move {
                let slow = move |_: &()| {
                    let _ = begun.send(());
                    gate.recv().map_err(|_| Error::Internal)
                };
                share.read(Arc::new(()), slow).await
            })
        };
        has_begun.await.expect("the read begins");
        read.abort();
        let _ = read.await;
        let next = {
            let share = share.clone();
            let next = async move { share.read(Arc::new(()), |_| Ok::<_, Error>("next")).await };
            tokio::spawn(next)
        };
        tokio::task::yield_now().await;
        assert!(!next.is_finished(), "the slot is in use");
        let refused = share.read(Arc::new(()), |_| Ok::<_, Error>(())).await;
        assert_eq!(refused, Err(Error::TooManyReads), "one read waits already");
        let other = slots.share(owner("quiet"));
        let other = other.read(Arc::new(()), |_| Ok::<_, Error>("other")).await;
        assert_eq!(other, Ok("other"), "another owner has a slot of its own");
        let turn = slots.share(Reader::Turn(named("greedy")));
        let turn = turn.read(Arc::new(()), |_| Ok::<_, Error>("turn")).await;
        assert_eq!(turn, Ok("turn"), "a turn does not wait behind requests");
        go.send(()).expect("the abandoned read still runs");
        assert_eq!(next.await.expect("a task"), Ok("next"));
    }
}
