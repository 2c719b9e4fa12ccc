//! Removal of what has expired or was deleted, as background tasks of the writer: events past their
//! retention, idempotency keys, the rows of deleted sessions, free pages. What expires does so by the
//! [trusted clock](crate::clock::trusted).

use std::sync::Arc;

use turnwire_event::{Timestamp, UtcDay, metric};
use turnwire_log::{AppendError, BackgroundTask, Progress, TrimCursor};

use crate::live::session::SessionServices;

/// Keys, and rows of usage, removed in one piece.
const KEYS_PER_PIECE: usize = 256;
/// Records of the audit, and jobs, removed in one piece.
const AUDIT_PER_PIECE: usize = 256;
/// Goes on with the removals that the last run left, and stores the time. Removes no event: what the
/// clock says at the start is the least certain.
pub(crate) fn start(services: &Arc<SessionServices>) {
    store_mark(services);
    remove_deleted(services);
    expire_keys(services);
    expire_usage(services);
}

/// Checks the clock, and begins a sweep if one is due.
pub(crate) fn check(services: &Arc<SessionServices>) {
    services.trusted_clock.check();
    if services.check_storage().is_err() {
        return;
    }
    let interval = services.options.retention_interval;
    if services.trusted_clock.begin_sweep(interval) {
        sweep(services);
        expire_audit(services);
    }
    if services.trusted_clock.is_mark_due() {
        store_mark(services);
    }
}

/// Trusts a time that the operator has confirmed.
pub(crate) fn confirm_time(services: &Arc<SessionServices>, time: Timestamp) {
    let trusted = services.trusted_clock.confirm(time);
    tracing::info!(%trusted, "the operator confirmed the time: events expire by it");
    store_mark(services);
}

/// Overwrites what removed rows have left in the files.
pub(crate) fn erase(services: &Arc<SessionServices>) {
    run(services, "erasure", |services| {
        services.store.erase_removed(&services.options.piece)
    });
}

/// Runs `piece` in the background while the service exists and does not drain.
fn run(
    services: &Arc<SessionServices>,
    name: &'static str,
    mut piece: impl FnMut(&Arc<SessionServices>) -> Result<Progress, AppendError> + Send + 'static,
) -> bool {
    let weak_services = Arc::downgrade(services);
    let task: BackgroundTask = Box::new(move || {
        match weak_services.upgrade() {
            Some(services) if !services.runner.is_draining() => {
                let progress = piece(&services);
                if matches!(progress, Ok(Progress::Done)) {
                    let seconds = services.clock.now().as_millis() as f64 / 1_000.0;
                    metrics::gauge!(metric::LOG_BACKGROUND_DONE_TIME, "task" => name).set(seconds);
                }
                progress
            }
            // What is left is removed after the next start.
            _ => Ok(Progress::Done),
        }
    });
    services.writer.run_background(name, task)
}

fn store_mark(services: &Arc<SessionServices>) {
    run(services, "clock mark", |services| {
        services
            .store
            .set_clock_mark(&services.trusted_clock.mark())?;
        Ok(Progress::Done)
    });
}

/// Removes events older than the retention.
fn sweep(services: &Arc<SessionServices>) {
    let before = services
        .trusted_clock
        .now()
        .before(services.options.retention);
    let mut cursor = TrimCursor::START;
    let mut sessions = 0;
    run(services, "retention", move |services| {
        let piece = services
            .store
            .trim(before, cursor, &services.options.piece)?;
        sessions += piece.trimmed.len();
        if !piece.trimmed.is_empty() {
            release_pages(services);
        }
        match piece.next {
            Some(next) => {
                cursor = next;
                Ok(Progress::More)
            }
            None => {
                if sessions > 0 {
                    tracing::info!(sessions, "removed events older than the retention");
                }
                Ok(Progress::Done)
            }
        }
    });
}

/// Removes expired idempotency keys.
pub(crate) fn expire_keys(services: &Arc<SessionServices>) {
    let trusted = services.trusted_clock.now();
    let before = trusted.before(services.options.idempotency_ttl);
    run(services, "idempotency keys", move |services| {
        let removed = services.store.expire_keys(before, KEYS_PER_PIECE)?;
        Ok(match removed == KEYS_PER_PIECE {
            true => Progress::More,
            false => Progress::Done,
        })
    });
}

/// Removes what principals used on the days before yesterday: no quota needs it, and their names must not
/// stay. Yesterday stays for a clock that is set back over midnight.
pub(crate) fn expire_usage(services: &Arc<SessionServices>) {
    let before = UtcDay::of(services.trusted_clock.now()).minus(1);
    run(services, "usage of principals", move |services| {
        let removed = services.store.expire_usage(before, KEYS_PER_PIECE)?;
        Ok(match removed == KEYS_PER_PIECE {
            true => Progress::More,
            false => Progress::Done,
        })
    });
}

/// Removes old records of the audit.
fn expire_audit(services: &Arc<SessionServices>) {
    let trusted = services.trusted_clock.now();
    let before = trusted.before(services.options.audit_retention);
    run(services, "audit", move |services| {
        let may_have_more = services.store.expire_audit(before, AUDIT_PER_PIECE)?;
        Ok(match may_have_more {
            true => Progress::More,
            false => Progress::Done,
        })
    });
}

/// Removes the rows of deleted sessions. Called on the writer's thread or before the first deletion,
/// so that a task that just ended is not taken for one that runs.
pub(crate) fn remove_deleted(services: &Arc<SessionServices>) {
    run(services, "deleted sessions", |services| {
        let progress = services.store.remove_deleted(&services.options.piece)?;
        release_pages(services);
        Ok(progress)
    });
}

/// Gives free pages back, in turns with the tasks that free them.
fn release_pages(services: &Arc<SessionServices>) {
    run(services, "free pages", |services| {
        let options = &services.options;
        services
            .store
            .release_pages(options.free_bytes_max, &options.piece)
    });
}
