//! The state machine of one step.
//!
//! ```text
//! slot:  pending → in_progress → partial* → success | error | timeout   (the last is final)
//! step:  open → over, once: when every slot has ended, or when it is terminated
//! ```
//! A result is known by its slot and its revision: the same one twice is one. What comes for a
//! slot that has ended, or for a step that is over, changes nothing.

use std::collections::HashSet;
use std::time::Duration;

use turnwire_event::body::plan::{SlotEnd, StepCompleted};
use turnwire_event::code::{SlotStatus, StepStatus};

/// Which slot: a sub-agent, and which result of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The sub-agent.
    pub subagent: String,
    /// Which of its results.
    pub result_key: String,
}

/// A slot that is expected to be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Which.
    pub key: Key,
    /// How long after the step's start it may take.
    pub deadline: Duration,
}

/// Which version of a result it is; the same one again says nothing new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Revision(pub u64);

/// What a result says about its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The work has begun.
    Begun,
    /// Something is there, more will come.
    Partial,
    /// All is there.
    Success,
    /// Nothing will come.
    Error,
}

/// What became of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The slot moved on.
    Noted,
    /// It was taken before.
    Repeated,
    /// Its slot had ended, or the step.
    Late,
    /// There is no such slot.
    Unknown,
}

/// Two slots of one key; their results could not be told apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two slots for {} of {}", .0.result_key, .0.subagent)]
pub struct SlotTaken(pub Key);

#[derive(Clone, Debug)]
struct Slot {
    expected: Expected,
    status: SlotStatus,
    seen: HashSet<Revision>,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    id: String,
    slots: Vec<Slot>,
    status: Option<StepStatus>,
    told: bool,
}

const fn is_end(status: SlotStatus) -> bool {
    match status {
        SlotStatus::Success | SlotStatus::Error | SlotStatus::Timeout => true,
        SlotStatus::Pending | SlotStatus::InProgress | SlotStatus::Partial => false,
    }
}

impl Step {
    /// An open step. One without slots is over at once.
    pub fn new(
        id: impl Into<String>,
        slots: impl IntoIterator<Item = Expected>,
    ) -> Result<Self, SlotTaken> {
        let mut keys = HashSet::new();
        let mut step = Self {
            id: id.into(),
            slots: Vec::new(),
            status: None,
            told: false,
        };
        for expected in slots {
            if !keys.insert(expected.key.clone()) {
                return Err(SlotTaken(expected.key));
            }
            step.slots.push(Slot {
                expected,
                status: SlotStatus::Pending,
                seen: HashSet::new(),
            });
        }
        step.settle();
        Ok(step)
    }

    /// Takes in a result.
    pub fn take(&mut self, key: &Key, revision: Revision, said: Said) -> Taken {
        let Some(slot) = self.slots.iter_mut().find(|s| s.expected.key == *key) else {
            return Taken::Unknown;
        };
        if slot.seen.contains(&revision) {
            return Taken::Repeated;
        }
        if self.status.is_some() || is_end(slot.status) {
            return Taken::Late;
        }
        slot.seen.insert(revision);
        slot.status = match (said, slot.status) {
            // Whoever says it has begun after it gave something says nothing new.
            (Said::Begun, SlotStatus::Partial) => SlotStatus::Partial,
            (Said::Begun, _) => SlotStatus::InProgress,
            (Said::Partial, _) => SlotStatus::Partial,
            (Said::Success, _) => SlotStatus::Success,
            (Said::Error, _) => SlotStatus::Error,
        };
        self.settle();
        Taken::Noted
    }

    /// Ends the slots whose deadline has passed `since` the step's start; gives which.
    pub fn expire(&mut self, since: Duration) -> Vec<Key> {
        if self.status.is_some() {
            return Vec::new();
        }
        let mut late = Vec::new();
        for slot in &mut self.slots {
            if !is_end(slot.status) && slot.expected.deadline <= since {
                slot.status = SlotStatus::Timeout;
                late.push(slot.expected.key.clone());
            }
        }
        self.settle();
        late
    }

    /// Ends one slot as past its deadline.
    pub fn expire_slot(&mut self, key: &Key) {
        let open = |slot: &&mut Slot| slot.expected.key == *key && !is_end(slot.status);
        if self.status.is_none()
            && let Some(slot) = self.slots.iter_mut().find(open)
        {
            slot.status = SlotStatus::Timeout;
            self.settle();
        }
    }

    /// Ends it from outside: what has not ended is an error.
    pub fn terminate(&mut self) {
        if self.status.is_some() {
            return;
        }
        for slot in self.slots.iter_mut().filter(|slot| !is_end(slot.status)) {
            slot.status = SlotStatus::Error;
        }
        self.status = Some(StepStatus::Terminated);
    }

    /// Its slots, in the order they were expected.
    pub fn slots(&self) -> impl Iterator<Item = (&Expected, SlotStatus)> {
        self.slots.iter().map(|slot| (&slot.expected, slot.status))
    }

    /// How it ended, once it has.
    pub fn status(&self) -> Option<StepStatus> {
        self.status
    }

    /// Its completion: given once, when it is over.
    pub fn completion(&mut self) -> Option<StepCompleted> {
        let status = self.status.filter(|_| !self.told)?;
        self.told = true;
        let end = |slot: &Slot| SlotEnd {
            subagent: slot.expected.key.subagent.clone(),
            result_key: slot.expected.key.result_key.clone(),
            status: slot.status,
        };
        Some(StepCompleted {
            plan_step_id: self.id.clone(),
            status,
            slots: self.slots.iter().map(end).collect(),
        })
    }

    fn settle(&mut self) {
        if self.status.is_some() || !self.slots.iter().all(|slot| is_end(slot.status)) {
            return;
        }
        let good = |slot: &&Slot| slot.status == SlotStatus::Success;
        let good = self.slots.iter().filter(good).count();
        self.status = Some(if good == self.slots.len() {
            StepStatus::Success
        } else if good == 0 {
            StepStatus::Failed
        } else {
            StepStatus::PartialFailure
        });
    }
}

#[cfg(test)]
mod tests;
