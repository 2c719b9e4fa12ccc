//! Periodic work beside the turns: checkpoints of messages in flight, the timers of the retention,
//! and unloading of idle sessions.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};
use turnwire_event::metric;
use turnwire_event::row::RowChange;
use turnwire_log::Sequencer;

use super::open_sessions::SessionRegistry;
use super::retention;
use crate::live::session::{LiveSession, SessionServices};

/// The longest interval between searches for idle sessions.
const UNLOAD_EVERY: Duration = Duration::from_secs(5);

/// Interval between searches for expired idempotency keys.
const KEY_EXPIRY_EVERY: Duration = Duration::from_secs(10);
/// The longest interval between checks of the clock and of what the retention has to do.
const RETENTION_CHECK_EVERY: Duration = Duration::from_secs(60);

/// Starts the timers. They end when the owner of the registry is dropped.
pub(crate) fn start_timers(services: &Arc<SessionServices>, registry: &Arc<SessionRegistry>) {
    let options = &services.options;
    let unload_every = options
        .idle_unload
        .clamp(Duration::from_millis(50), UNLOAD_EVERY);
    let owners = (services, registry);
    every(owners, options.checkpoint_interval, |services, registry| {
        checkpoint(services, registry);
    });
    let check_every = options.retention_interval.min(RETENTION_CHECK_EVERY);
    every(owners, check_every, |services, _| {
        retention::check(services)
    });
    every(owners, unload_every, move |services, registry| {
        // Logs a fault of the store also without requests.
        let _ = services.store.fault();
        announce_routing_policy(services, registry);
        metrics::gauge!(metric::RINGS_BYTES).set(services.ring_budget.used() as f64);
        metrics::counter!(metric::RINGS_EVICTED_TOTAL).absolute(services.ring_budget.evicted());
        registry.unload_idle();
        // Queued turns that a full disk or a failed read kept from starting.
        let queued = registry.with_queued_turns();
        queued.iter().for_each(LiveSession::start_next_turn);
    });
    every(owners, KEY_EXPIRY_EVERY, |services, _| {
        retention::expire_keys(services);
        retention::expire_usage(services);
    });
    every(owners, options.erase_interval, |services, _| {
        retention::erase(services);
    });
    retention::start(services);
}

/// Calls `work` after each interval, while both are alive: nothing happens at the start itself.
fn every(
    (services, registry): (&Arc<SessionServices>, &Arc<SessionRegistry>),
    period: Duration,
    work: impl Fn(&Arc<SessionServices>, &SessionRegistry) + Send + 'static,
) {
    let (services, registry) = (Arc::downgrade(services), Arc::downgrade(registry));
    tokio::spawn(async move {
        let mut timer = tokio::time::interval_at(Instant::now() + period, period);
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
