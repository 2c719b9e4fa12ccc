//! Reads of the store, off the runtime's threads and never too many at once.

use std::sync::Arc;

use tokio::sync::Semaphore;
use turnwire_event::row::SessionRow;
use turnwire_log::{ReadError, Store};

use crate::error::Error;

/// Reads of the store at once. More would only wait for each other inside, each on a thread of
/// its own.
static READS: Semaphore = Semaphore::const_new(16);

/// Levels of workers that are looked at: more than any setting allows.
const LEVELS_MAX: usize = 64;

/// How many sessions stand above one: none above a person's own, one above its worker.
pub(crate) fn depth(store: &dyn Store, row: &SessionRow) -> Result<usize, ReadError> {
    let mut above = row.parent;
    let mut depth = 0;
    while let Some(id) = above.filter(|_| depth < LEVELS_MAX) {
        depth += 1;
        above = store.session(id)?.and_then(|row| row.parent);
    }
    Ok(depth)
}

/// Runs a read off the runtime's threads.
pub(crate) async fn blocking<T, E>(
    store: Arc<dyn Store>,
    read: impl FnOnce(&dyn Store) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let _leave = READS.acquire().await;
    match tokio::task::spawn_blocking(move || read(store.as_ref())).await {
        Ok(result) => result,
        Err(_) => Err(Error::Internal.into()),
    }
}
