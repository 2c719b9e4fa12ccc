//! The emitter of the current turn as a task-local value: code that runs in a turn finds the
//! emitter without being passed it, and so does every task that the code starts with [`spawn`].

use std::future::Future;
use std::sync::Arc;

use tokio::task::{AbortHandle, JoinSet};
use tracing::Instrument as _;
use turnwire_event::port::EventEmitter;

tokio::task_local! {
    static EMITTER: Arc<dyn EventEmitter>;
}

/// The [`EventEmitter`] of the turn that the calling code runs in; `None` outside of turns.
pub fn current() -> Option<Arc<dyn EventEmitter>> {
    EMITTER.try_with(Arc::clone).ok()
}

/// Runs `future` with `emitter` as its ambient emitter.
pub async fn scope<F: Future>(emitter: Arc<dyn EventEmitter>, future: F) -> F::Output {
    EMITTER.scope(emitter, future).await
}

/// Spawns a task that inherits the ambient emitter and the span of the caller. The task belongs to the [`JoinSet`]: dropping
/// the set aborts the task.
pub fn spawn<F>(tasks: &mut JoinSet<F::Output>, future: F) -> AbortHandle
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    match current() {
        Some(emitter) => tasks.spawn(scope(emitter, future).in_current_span()),
        None => tasks.spawn(future.in_current_span()),
    }
}
