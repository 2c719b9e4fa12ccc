//! Periodic work beside the turns: checkpoints of messages in flight, retention of events, expiry of
//! attach tokens and idempotency keys, and unloading of idle sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use turnwire_event::Timestamp;
use turnwire_event::row::RowChange;
use turnwire_log::Sequencer;

use super::attach_token::AttachTokens;
use super::open_sessions::SessionRegistry;
use crate::live::session::{LiveSession, SessionServices};

/// Sessions trimmed in one transaction: bounds how long the writer is busy with it.
const TRIM_SESSIONS: usize = 100;
/// The longest interval between searches for idle sessions and expired tokens.
const UNLOAD_EVERY: Duration = Duration::from_secs(5);

/// Interval between searches for expired idempotency keys.
const KEY_EXPIRY_EVERY: Duration = Duration::from_secs(10);
/// Keys removed in one transaction: batches of events are written between two of them.
const KEYS_PER_BATCH: usize = 1_000;

/// Starts the timers. They end when the owner of the registry is dropped.
pub(crate) fn start_timers(
    services: &Arc<SessionServices>,
    registry: &Arc<SessionRegistry>,
    tokens: &Arc<AttachTokens>,
) {
    let options = &services.options;
    let tokens = tokens.clone();
    let unload_every = options
        .idle_unload
        .clamp(Duration::from_millis(50), UNLOAD_EVERY);
    let owners = (services, registry);
    every(owners, options.checkpoint_interval, |services, registry| {
        checkpoint(services, registry);
    });
    every(owners, options.retention_interval, |services, _| {
        trim_old_events(services);
    });
    every(owners, unload_every, move |services, registry| {
        announce_routing_policy(services, registry);
        registry.unload_idle();
        tokens.remove_expired();
        // Queued turns that a full disk or a failed read kept from starting.
        let queued = registry.with_queued_turns();
        queued.iter().for_each(LiveSession::start_next_turn);
    });
    let is_expiring = Arc::new(AtomicBool::new(false));
    every(owners, KEY_EXPIRY_EVERY, move |services, _| {
        expire_keys(services, &is_expiring);
    });
}

/// Calls `work` at an interval, while both are alive.
fn every(
    (services, registry): (&Arc<SessionServices>, &Arc<SessionRegistry>),
    period: Duration,
    work: impl Fn(&Arc<SessionServices>, &SessionRegistry) + Send + 'static,
) {
    let (services, registry) = (Arc::downgrade(services), Arc::downgrade(registry));
    tokio::spawn(async move {
        let mut timer = tokio::time::interval(period);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            timer.tick().await;
            let (Some(services), Some(registry)) = (services.upgrade(), registry.upgrade()) else {
                return;
            };
            work(&services, &registry);
        }
    });
}

/// Stores the growth of all messages in flight, in one commit.
fn checkpoint(services: &SessionServices, registry: &SessionRegistry) {
    let parts = registry.running().into_iter().filter_map(|live| {
        let part = live.ring.with_state_mut(|transcript| {
            let open = transcript.open.as_mut()?;
            open.message.as_ref()?.part(&mut open.checkpoint)
        })?;
        Some((live.sequencer.clone(), vec![RowChange::MessagePart(part)]))
    });
    let parts: Vec<_> = parts.collect();
    if !parts.is_empty() {
        Sequencer::checkpoint(&services.writer, parts);
    }
}

/// Announces the routing policy in force to the sessions that are followed, unless it was announced
/// or the disk is full. Returns their number.
pub(crate) fn announce_routing_policy(
    services: &SessionServices,
    registry: &SessionRegistry,
) -> usize {
    if services.is_storage_full() {
        return 0;
    }
    // Locked to the end, so that two policies are announced in their order.
    let mut policy = services.routing_policy.lock();
    let announcement = policy.take_announcement();
    announcement.map_or(0, |body| registry.announce(&body))
}

/// Removes expired idempotency keys, unless that is under way already.
fn expire_keys(services: &Arc<SessionServices>, is_expiring: &Arc<AtomicBool>) {
    if services.is_storage_full() || is_expiring.swap(true, Ordering::AcqRel) {
        return;
    }
    let before = services
        .clock
        .now()
        .before(services.options.idempotency_ttl);
    expire_batch(services, before, KeyExpiryGuard(is_expiring.clone()));
}

/// Marks the expiry of keys as under way until it is dropped.
struct KeyExpiryGuard(Arc<AtomicBool>);

impl Drop for KeyExpiryGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Removes a batch of expired keys, then queues the next one at the writer. A full disk or a drain
/// ends it; the remaining keys are removed another time.
fn expire_batch(services: &Arc<SessionServices>, before: Timestamp, guard: KeyExpiryGuard) {
    let weak_services = Arc::downgrade(services);
    let mut guard = Some(guard);
    services.writer.run(Box::new(move || {
        let can_expire = |services: &Arc<SessionServices>| {
            !services.is_storage_full() && !services.runner.is_draining()
        };
        let Some(services) = weak_services.upgrade().filter(can_expire) else {
            return Ok(());
        };
        if services.store.expire_keys(before, KEYS_PER_BATCH)? == KEYS_PER_BATCH
            && let Some(guard) = guard.take()
        {
            expire_batch(&services, before, guard);
        }
        Ok(())
    }));
}

/// Removes events older than the retention on the writer's thread, [`TRIM_SESSIONS`] sessions at a
/// time.
fn trim_old_events(services: &SessionServices) {
    let before = services.clock.now().before(services.options.retention);
    let store = services.store.clone();
    services.writer.run(Box::new(move || {
        loop {
            let trimmed = store.trim(before, TRIM_SESSIONS)?;
            if trimmed.is_empty() {
                return Ok(());
            }
            tracing::info!(
                sessions = trimmed.len(),
                "removed events older than the retention"
            );
        }
    }));
}
