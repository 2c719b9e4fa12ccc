//! Starting the queued turns of a session, one after the other.

use std::sync::Arc;

use turnwire_event::TurnId;

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::live::turn_slot::TurnSlot;
use crate::submit::input_bytes::TurnPermit;
use crate::turn::cancel::disconnect::on_last_watcher_left;
use crate::turn::cancel::queued_turn::fail_queued;
use crate::turn::run::start::{PendingTurn, load_history, start_turn};

/// How often a turn is tried to be started while the store cannot be read.
pub(crate) const ATTEMPTS_MAX: u8 = 5;

impl LiveSession {
    /// Starts the next queued turn if nothing runs. Must not be called under the lock of the slot.
    pub(crate) fn start_next_turn(self: &Arc<Self>) {
        {
            let mut slot = self.slot.lock();
            if slot.starting || next_startable(self, &slot).is_none() {
                return;
            }
            slot.starting = true;
        }
        let starter = QueueStarter {
            live: self.clone(),
            done: false,
        };
        self.services.runner.runtime.spawn(starter.run());
    }
}

/// The queued turn that can start now.
fn next_startable(live: &LiveSession, slot: &TurnSlot) -> Option<TurnId> {
    let next = slot.queue.front()?.id;
    let services = &live.services;
    let is_blocked = slot.running.is_some()
        || slot.first_turn.is_some()
        || services.runner.is_draining()
        || services.check_storage().is_err()
        || live.ring.close_reason().is_some()
        || services.quarantined.lock().contains(&live.id);
    (!is_blocked).then_some(next)
}

/// The task that starts the next queued turn; at most one for each session.
struct QueueStarter {
    live: Arc<LiveSession>,
    done: bool,
}

impl Drop for QueueStarter {
    /// Lets another task try if this one was dropped before its end, as by a runtime that shuts
    /// down.
    fn drop(&mut self) {
        if !self.done {
            self.live.slot.lock().starting = false;
        }
    }
}

impl QueueStarter {
    async fn run(mut self) {
        let live = self.live.clone();
        // The turn was accepted: it waits for its slot, in the order of its owner's turns. Before the
        // token, because a drain does not wait for turns that have not started.
        let Ok(permit) = live.services.runner.running.acquire(&live.owner).await else {
            return;
        };
        let mut permit = Some(permit);
        let _task_token = live.services.runner.turn_tasks.token();
        loop {
            let (turn, version) = {
                let mut slot = live.slot.lock();
                match next_startable(&live, &slot) {
                    Some(turn) => (turn, slot.version),
                    None => return self.finish(&mut slot),
                }
            };
            let history = load_history(&live, live.turn_read_share()).await;
            let mut slot = live.slot.lock();
            if slot.version != version || next_startable(&live, &slot) != Some(turn) {
                continue;
            }
            let Some(queued) = slot.queued(turn).cloned() else {
                continue;
            };
            let history = match history {
                Ok(history) if !queued.unreadable => history,
                // The turn was accepted, and other reads end: upkeep tries again, however often.
                Err(Error::TooManyReads) if !queued.unreadable => {
                    return self.finish(&mut slot);
                }
                // The turn was accepted, and the failure may be temporary: upkeep tries again.
                Err(Error::Internal)
                    if !queued.unreadable && slot.count_start_attempt(turn) < ATTEMPTS_MAX =>
                {
                    return self.finish(&mut slot);
                }
                refused => {
                    let error = refused.err();
                    tracing::error!(session = %live.id, %turn, ?error, "could not start a queued turn: it fails");
                    match fail_queued(&live, &mut slot, turn) {
                        Some(_) => continue,
                        None => return self.finish(&mut slot),
                    }
                }
            };
            let Some(permit) = permit.take() else {
                return self.finish(&mut slot);
            };
            let permit = TurnPermit::new(permit, queued.input_permit);
            let pending = PendingTurn::new(turn, queued.request, queued.presence, permit);
            let started = start_turn(&live, &mut slot, pending, history);
            if started.is_ok() {
                slot.dequeue(turn);
            }
            self.finish(&mut slot);
            drop(slot);
            // Refused: the session was deleted or quarantined, and its queue is gone.
            if let Ok((_, run)) = started {
                run.spawn();
                // A watcher that left while the turn was queued could not cancel it.
                if live.presence.left_after(queued.departures) {
                    on_last_watcher_left(&live, false);
                }
            }
            return;
        }
    }

    /// Ends the task under the lock of the slot, so that the next one can start.
    fn finish(&mut self, slot: &mut TurnSlot) {
        slot.starting = false;
        self.done = true;
    }
}
