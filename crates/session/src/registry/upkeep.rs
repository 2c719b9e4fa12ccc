//! What goes on beside the turns: checkpoints, retention, letting idle sessions and old tokens go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use turnwire_event::Timestamp;
use turnwire_event::row::RowChange;
use turnwire_log::{Sequencer, Store};

use crate::attach_token::AttachTokens;
use crate::live::session::{LiveSession, SessionServices};
use crate::registry::open_sessions::SessionRegistry;

/// Sessions trimmed in one transaction: bounds how long the writer is busy with it.
const TRIM_SESSIONS: usize = 100;
/// How often idle sessions and expired tokens are looked for, at most.
const UNLOAD_EVERY: Duration = Duration::from_secs(5);

/// How often old keys of submits are looked for.
const FORGET_EVERY: Duration = Duration::from_secs(10);
/// Keys removed in one transaction: batches of events go between one and the next.
const FORGET_KEYS: usize = 1_000;

/// Starts the timers. They end when the service that holds the registry is gone.
pub(crate) fn start(
    house: &Arc<SessionServices>,
    registry: &Arc<SessionRegistry>,
    tokens: &Arc<AttachTokens>,
) {
    let options = &house.options;
    let tokens = tokens.clone();
    let unload_every = options
        .idle_unload
        .clamp(Duration::from_millis(50), UNLOAD_EVERY);
    every(house, registry, options.checkpoint, |house, registry| {
        checkpoint(house, registry);
    });
    every(house, registry, options.retention_sweep, |house, _| {
        retain(house)
    });
    every(house, registry, unload_every, move |house, registry| {
        tell_policy(house, registry);
        registry.unload();
        tokens.sweep();
        // What a full disk held back goes on when there is room.
        registry.waiting().iter().for_each(LiveSession::kick);
    });
    let forgetting = Arc::new(AtomicBool::new(false));
    every(house, registry, FORGET_EVERY, move |house, _| {
        forget(house, &forgetting);
    });
}

fn every(
    house: &Arc<SessionServices>,
    registry: &Arc<SessionRegistry>,
    period: Duration,
    work: impl Fn(&Arc<SessionServices>, &SessionRegistry) + Send + 'static,
) {
    let (house, registry) = (Arc::downgrade(house), Arc::downgrade(registry));
    tokio::spawn(async move {
        let mut timer = tokio::time::interval(period);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            timer.tick().await;
            let (Some(house), Some(registry)) = (house.upgrade(), registry.upgrade()) else {
                return;
            };
            work(&house, &registry);
        }
    });
}

/// Stores what messages in flight have grown by: one commit for all of them.
fn checkpoint(house: &SessionServices, registry: &SessionRegistry) {
    let grown = registry.running().into_iter().filter_map(|live| {
        let part = live.ring.touch(|transcript| {
            let open = transcript.open.as_mut()?;
            open.message.as_ref()?.part(&mut open.checkpoint)
        })?;
        Some((live.sequencer.clone(), vec![RowChange::MessagePart(part)]))
    });
    let parts: Vec<_> = grown.collect();
    if !parts.is_empty() {
        Sequencer::checkpoint(&house.writer, parts);
    }
}

/// Tells sessions of the routing policy in force if they were not, unless the disk is full; gives
/// back how many were told.
pub(crate) fn tell_policy(house: &SessionServices, registry: &SessionRegistry) -> usize {
    if house.writer.health().is_full() {
        return 0; // what room is left is for the endings of turns
    }
    // Held to the end, so that two policies are told in the order they came.
    let mut policy = house.policy.lock();
    policy.news().map_or(0, |body| registry.tell(&body))
}

/// Removes keys of submits that stand for nothing any more, unless that is under way already.
fn forget(house: &Arc<SessionServices>, forgetting: &Arc<AtomicBool>) {
    if house.writer.health().is_full() || forgetting.swap(true, Ordering::AcqRel) {
        return;
    }
    let age = i64::try_from(house.options.idempotency_ttl.as_millis()).unwrap_or(i64::MAX);
    let before = Timestamp::from_millis(house.clock.now().as_millis().saturating_sub(age));
    forget_piece(house, before, KeyExpiryGuard(forgetting.clone()));
}

/// Says that something is under way, until it is dropped.
struct KeyExpiryGuard(Arc<AtomicBool>);

impl Drop for KeyExpiryGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Removes a piece of the old keys, then the next behind whatever else waits for the writer. A
/// full disk or the end of the service ends it: what is left goes another time.
fn forget_piece(house: &Arc<SessionServices>, before: Timestamp, under_way: KeyExpiryGuard) {
    let again = Arc::downgrade(house);
    let mut under_way = Some(under_way);
    house.writer.run(Box::new(move |store: &dyn Store| {
        let wanted = |house: &Arc<SessionServices>| {
            !house.writer.health().is_full() && !house.runner.is_draining()
        };
        let Some(house) = again.upgrade().filter(wanted) else {
            return Ok(());
        };
        if store.forget_keys(before, FORGET_KEYS)? == FORGET_KEYS
            && let Some(under_way) = under_way.take()
        {
            forget_piece(&house, before, under_way);
        }
        Ok(())
    }));
}

/// Trims events that are too old, on the writing thread, a bounded piece at a time.
fn retain(house: &SessionServices) {
    let age = i64::try_from(house.options.retention.as_millis()).unwrap_or(i64::MAX);
    let before = Timestamp::from_millis(house.clock.now().as_millis().saturating_sub(age));
    house.writer.run(Box::new(move |store: &dyn Store| {
        loop {
            let trimmed = store.trim(before, TRIM_SESSIONS)?;
            if trimmed.is_empty() {
                return Ok(());
            }
            tracing::info!(sessions = trimmed.len(), "trimmed old events");
        }
    }));
}
