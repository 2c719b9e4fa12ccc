//! Reads of the store, off the runtime's threads and never too many at once.

use std::sync::Arc;

use tokio::sync::Semaphore;
use turnwire_log::Store;

use crate::error::Error;

/// Reads of the store at once. More would only wait for each other inside, each on a thread of
/// its own.
static READS: Semaphore = Semaphore::const_new(16);

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
