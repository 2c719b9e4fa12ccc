//! What goes on beside the turns: checkpoints, retention, letting idle sessions and old tokens go.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use turnwire_event::Timestamp;
use turnwire_event::row::RowChange;
use turnwire_log::{Sequencer, Store};

use crate::sessions::Sessions;

/// Sessions trimmed in one transaction: bounds how long the writer is busy with it.
const TRIM_SESSIONS: usize = 100;
/// How often idle sessions and expired tokens are looked for.
const UNLOAD_EVERY: Duration = Duration::from_secs(5);

/// Starts the timers. They end with the service.
pub(crate) fn start(sessions: &Arc<Sessions>) {
    let options = &sessions.house.options;
    every(sessions, options.checkpoint, Sessions::checkpoint);
    every(
        sessions,
        UNLOAD_EVERY.min(options.idle_unload.max(Duration::from_millis(50))),
        |sessions| {
            sessions.registry.unload();
            sessions.tokens.sweep();
        },
    );
    every(sessions, options.retention_sweep, Sessions::retain);
}

fn every(sessions: &Arc<Sessions>, period: Duration, work: fn(&Sessions)) {
    let weak: Weak<Sessions> = Arc::downgrade(sessions);
    tokio::spawn(async move {
        let mut timer = tokio::time::interval(period);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            timer.tick().await;
            let Some(sessions) = weak.upgrade() else {
                return;
            };
            work(&sessions);
        }
    });
}

impl Sessions {
    /// Stores what messages in flight have grown by: one commit for all of them.
    fn checkpoint(&self) {
        let grown = self.registry.running().into_iter().filter_map(|live| {
            let part = live.ring.touch(|transcript| {
                let open = transcript.open.as_mut()?;
                open.message.as_ref()?.part(&mut open.checkpoint)
            })?;
            Some((live.sequencer.clone(), vec![RowChange::MessagePart(part)]))
        });
        let parts: Vec<_> = grown.collect();
        if !parts.is_empty() {
            Sequencer::checkpoint(&self.house.writer, parts);
        }
    }

    /// Trims events that are too old, on the writing thread, a bounded piece at a time.
    fn retain(&self) {
        let age = i64::try_from(self.house.options.retention.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp::from_millis(self.house.clock.now().as_millis().saturating_sub(age));
        self.house.writer.run(Box::new(move |store: &dyn Store| {
            while let Ok(trimmed) = store.trim(before, TRIM_SESSIONS) {
                if trimmed.is_empty() {
                    break;
                }
                tracing::info!(sessions = trimmed.len(), "trimmed old events");
            }
        }));
    }
}
