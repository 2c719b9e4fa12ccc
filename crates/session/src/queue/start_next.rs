//! Starting the turns that wait, one after the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use turnwire_event::TurnId;

use crate::error::Error;
use crate::live::session::{LiveSession, SessionServices};
use crate::live::turn_slot::TurnSlot;
use crate::registry::open_sessions::SessionRegistry;
use crate::run::start::PendingTurn;
use crate::store_read::blocking;

/// How often a start is tried when the store cannot be read.
const TRIES_MAX: u8 = 5;
/// How long to wait for room when more sessions have turns that wait than may be open.
const QUEUE_UP_AGAIN: Duration = Duration::from_millis(500);

impl LiveSession {
    /// Starts the next in line if there is one and nothing runs. Never under the session's lock.
    pub(crate) fn kick(self: &Arc<Self>) {
        {
            let mut slot = self.slot.lock();
            if slot.starting || self.due(&slot).is_none() {
                return;
            }
            slot.starting = true;
        }
        let starter = QueueStarter {
            live: self.clone(),
            done: false,
        };
        self.house.runner.runtime.spawn(starter.run());
    }

    /// The turn that should start now.
    fn due(&self, slot: &TurnSlot) -> Option<TurnId> {
        let next = slot.front()?.id;
        let house = &self.house;
        let held = slot.running.is_some()
            || house.runner.is_draining()
            || house.writer.health().is_full()
            || self.ring.closed().is_some()
            || house.quarantined.lock().contains(&self.id);
        (!held).then_some(next)
    }
}

/// The task that starts the next in line; one a session at a time.
struct QueueStarter {
    live: Arc<LiveSession>,
    done: bool,
}

impl Drop for QueueStarter {
    /// Dropped with work to do, as when the runtime goes away: another may try.
    fn drop(&mut self) {
        if !self.done {
            self.live.slot.lock().starting = false;
        }
    }
}

impl QueueStarter {
    async fn run(mut self) {
        let live = self.live.clone();
        let _at_work = live.house.runner.turns.token();
        loop {
            let (turn, moves) = {
                let mut slot = live.slot.lock();
                match live.due(&slot) {
                    Some(turn) => (turn, slot.moves),
                    None => return self.finish(&mut slot),
                }
            };
            let told = live.past().await;
            let mut slot = live.slot.lock();
            if slot.moves != moves || live.due(&slot) != Some(turn) {
                continue;
            }
            let Some(waiting) = slot.find(turn).cloned() else {
                continue;
            };
            let told = match told {
                Ok(told) if !waiting.broken => told,
                // It was accepted, and this may pass: another time, with the next look at lines.
                Err(Error::Internal) if !waiting.broken && slot.tried(turn) < TRIES_MAX => {
                    return self.finish(&mut slot);
                }
                refused => {
                    let error = refused.err();
                    tracing::error!(session = %live.id, %turn, ?error, "a turn in line could not be started");
                    match live.fail(&mut slot, turn) {
                        Some(_) => continue,
                        None => return self.finish(&mut slot),
                    }
                }
            };
            let next = PendingTurn {
                id: turn,
                submit: waiting.submit,
                presence: waiting.presence,
                rows: Vec::new(),
                before: Vec::new(),
                resumed: None,
            };
            let begun = live.begin(&mut slot, next, told);
            if begun.is_ok() {
                slot.take(turn);
            }
            self.finish(&mut slot);
            drop(slot);
            // Refused: the session was deleted or quarantined, there is nothing to start it in.
            if let Ok((_, run)) = begun {
                run.go();
                // Whoever left while it waited left before it could be cancelled.
                if live.left_since(waiting.departures) {
                    live.left(false);
                }
            }
            return;
        }
    }

    /// The task is over, as everyone under the lock can see.
    fn finish(&mut self, slot: &mut TurnSlot) {
        slot.starting = false;
        self.done = true;
    }
}

/// Opens the sessions in which turns wait since the last run: that starts them.
pub(crate) async fn queue_up(
    house: &Arc<SessionServices>,
    registry: &Arc<SessionRegistry>,
) -> Result<(), Error> {
    let store = house.store();
    let waiting = blocking(store, |store| Ok::<_, Error>(store.queues()?)).await?;
    if waiting.is_empty() {
        return Ok(());
    }
    tracing::info!(sessions = waiting.len(), "turns wait since the last run");
    let (house, registry) = (Arc::downgrade(house), Arc::downgrade(registry));
    let mut waiting: VecDeque<_> = waiting.into_iter().map(|id| (id, 1)).collect();
    tokio::spawn(async move {
        while let Some((id, tries)) = waiting.pop_front() {
            let (Some(house), Some(registry)) = (house.upgrade(), registry.upgrade()) else {
                return;
            };
            if house.quarantined.lock().contains(&id) {
                continue;
            }
            match registry.get(&house, id).await {
                Ok(_) => continue,
                // As many are open as may be: their turns end some time.
                Err(Error::TooMany) => waiting.push_front((id, tries)),
                // The others need not wait for what may pass.
                Err(Error::Internal) if tries < TRIES_MAX => waiting.push_back((id, tries + 1)),
                Err(error) => {
                    tracing::error!(session = %id, %error, "turns that wait could not be started");
                    continue;
                }
            }
            drop((house, registry));
            tokio::time::sleep(QUEUE_UP_AGAIN).await;
        }
    });
    Ok(())
}
