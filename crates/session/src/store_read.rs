//! Reads of the store on blocking threads, with a bound on how many run at once.

use std::sync::Arc;

use tokio::sync::Semaphore;
use turnwire_event::row::SessionRow;
use turnwire_log::{ReadError, SessionRecords};

use crate::error::Error;

/// Concurrent reads of the store. More would only wait for each other inside SQLite, each on a
/// thread of its own.
static READ_PERMITS: Semaphore = Semaphore::const_new(16);

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

/// Runs `read` on a blocking thread.
pub(crate) async fn read_store<S, T, E>(
    store: Arc<S>,
    read: impl FnOnce(&S) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    S: ?Sized + Send + Sync + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let _permit = READ_PERMITS.acquire().await;
    match tokio::task::spawn_blocking(move || read(store.as_ref())).await {
        Ok(result) => result,
        Err(_) => Err(Error::Internal.into()),
    }
}
