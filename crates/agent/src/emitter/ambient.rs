//! The writer of the turn at hand, ambient: whatever runs in a turn finds it without being
//! handed it, and whatever it starts with `spawn` finds it too.

use std::future::Future;
use std::sync::Arc;

use tokio::task::{AbortHandle, JoinSet};
use turnwire_event::port::Emitter;

tokio::task_local! {
    static WRITER: Arc<dyn Emitter>;
}

/// The writer of the turn that this code runs in; none outside of turns.
pub fn current() -> Option<Arc<dyn Emitter>> {
    WRITER.try_with(Arc::clone).ok()
}

/// Runs `future` with `writer` as its writer.
pub async fn scope<F: Future>(writer: Arc<dyn Emitter>, future: F) -> F::Output {
    WRITER.scope(writer, future).await
}

/// Starts a task that keeps the writer. The task belongs to `tasks`: dropping that stops it.
pub fn spawn<F>(tasks: &mut JoinSet<F::Output>, future: F) -> AbortHandle
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    match current() {
        Some(writer) => tasks.spawn(scope(writer, future)),
        None => tasks.spawn(future),
    }
}
