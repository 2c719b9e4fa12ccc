//! Turns that were queued before the server restarted: their sessions are loaded, which starts them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::open_sessions::SessionRegistry;
use crate::error::Error;
use crate::live::session::SessionServices;
use crate::turn::queue::start_next::ATTEMPTS_MAX;

/// Pause before the next attempt to load a session.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Loads the sessions with stored queues, on a task of its own.
pub(crate) async fn resume_queues(
    services: &Arc<SessionServices>,
    registry: &Arc<SessionRegistry>,
) -> Result<(), Error> {
    let queues = services.read_rows(|store| store.queued_sessions()).await?;
    if queues.is_empty() {
        return Ok(());
    }
    tracing::info!(
        sessions = queues.len(),
        "resuming queued turns of the last run"
    );
    let (services, registry) = (Arc::downgrade(services), Arc::downgrade(registry));
    let mut queues: VecDeque<_> = queues.into_iter().map(|id| (id, 1)).collect();
    tokio::spawn(async move {
        while let Some((id, attempts)) = queues.pop_front() {
            let (Some(services), Some(registry)) = (services.upgrade(), registry.upgrade()) else {
                return;
            };
            if services.quarantined.lock().contains(&id) {
                continue;
            }
            match registry.open(&services, id, None).await {
                Ok(_) => continue,
                // A limit of sessions in memory or of reads is reached: turns and reads end at some
                // point. Sessions of other owners need not wait.
                Err(Error::LimitReached { .. } | Error::TooManyReads) => {
                    queues.push_back((id, attempts));
                }
                // The failure may be temporary: the other sessions need not wait for it.
                Err(Error::Internal) if attempts < ATTEMPTS_MAX => {
                    queues.push_back((id, attempts + 1));
                }
                Err(error) => {
                    tracing::error!(session = %id, %error, "could not resume the queued turns of a session");
                    continue;
                }
            }
            drop((services, registry));
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    });
    Ok(())
}
