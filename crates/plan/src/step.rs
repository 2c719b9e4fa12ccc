//! The state machine of one plan step.
//!
//! ```text
//! slot:  pending → in_progress → partial* → success | error | timeout   (the last is final)
//! step:  open → completed, once: when every slot is final, or when the step is terminated
//! ```
//! A result is identified by its slot and its [`ResultRevision`]; a repeated revision has no
//! effect. A result for a final slot, or for a completed step, has no effect either.

use std::collections::HashSet;
use std::time::Duration;

use turnwire_event::body::plan::{SlotEnd, StepCompleted};
use turnwire_event::code::{SlotStatus, StepStatus};

/// Identifies a slot within its step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotKey {
    /// The name of the sub-agent that fills the slot.
    pub subagent: String,
    /// Distinguishes several results of the same sub-agent, for example by the id of its tool use.
    pub result_key: String,
}

/// A slot that the step waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedSlot {
    /// Unique within the step.
    pub key: SlotKey,
    /// The time limit, counted from the start of the step.
    pub deadline: Duration,
}

/// The version of a result. Only the first report with a given revision has an effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResultRevision(pub u64);

/// A report about the progress of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotReport {
    /// The sub-agent has started.
    Started,
    /// A part of the result has arrived.
    Partial,
    /// The complete result has arrived.
    Success,
    /// The sub-agent has failed.
    Error,
}

/// The effect of a [`SlotReport`] on its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportEffect {
    /// The slot has the reported status now.
    Applied,
    /// No effect: a report with this revision was applied before.
    Duplicate,
    /// No effect: the slot is final, or the step is completed.
    Late,
    /// No effect: the step has no such slot.
    UnknownSlot,
}

/// Two slots of a step have the same [`SlotKey`], so that their results cannot be distinguished.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two slots have the key {} of sub-agent {}", .0.result_key, .0.subagent)]
pub struct DuplicateSlot(pub SlotKey);

#[derive(Clone, Debug)]
struct StepSlot {
    expected: ExpectedSlot,
    status: SlotStatus,
    revisions: HashSet<ResultRevision>,
}

/// One plan step with its slots.
#[derive(Clone, Debug)]
pub struct Step {
    id: String,
    slots: Vec<StepSlot>,
    status: Option<StepStatus>,
    completion_returned: bool,
}

const fn is_final(status: SlotStatus) -> bool {
    match status {
        SlotStatus::Success | SlotStatus::Error | SlotStatus::Timeout => true,
        SlotStatus::Pending | SlotStatus::InProgress | SlotStatus::Partial => false,
    }
}

impl Step {
    /// An open step. A step without slots is completed at once.
    pub fn new(
        id: impl Into<String>,
        slots: impl IntoIterator<Item = ExpectedSlot>,
    ) -> Result<Self, DuplicateSlot> {
        let mut keys = HashSet::new();
        let mut step = Self {
            id: id.into(),
            slots: Vec::new(),
            status: None,
            completion_returned: false,
        };
        for expected in slots {
            if !keys.insert(expected.key.clone()) {
                return Err(DuplicateSlot(expected.key));
            }
            step.slots.push(StepSlot {
                expected,
                status: SlotStatus::Pending,
                revisions: HashSet::new(),
            });
        }
        step.update_status();
        Ok(step)
    }

    /// Applies a report to the slot `key`.
    pub fn report(
        &mut self,
        key: &SlotKey,
        revision: ResultRevision,
        report: SlotReport,
    ) -> ReportEffect {
        let Some(slot) = self.slots.iter_mut().find(|s| s.expected.key == *key) else {
            return ReportEffect::UnknownSlot;
        };
        if slot.revisions.contains(&revision) {
            return ReportEffect::Duplicate;
        }
        if self.status.is_some() || is_final(slot.status) {
            return ReportEffect::Late;
        }
        slot.revisions.insert(revision);
        slot.status = match (report, slot.status) {
            // A late start report does not undo a partial result.
            (SlotReport::Started, SlotStatus::Partial) => SlotStatus::Partial,
            (SlotReport::Started, _) => SlotStatus::InProgress,
            (SlotReport::Partial, _) => SlotStatus::Partial,
            (SlotReport::Success, _) => SlotStatus::Success,
            (SlotReport::Error, _) => SlotStatus::Error,
        };
        self.update_status();
        ReportEffect::Applied
    }

    /// Times out the slots whose deadline is at most `elapsed`, the time since the start of the
    /// step. Returns their keys.
    pub fn expire(&mut self, elapsed: Duration) -> Vec<SlotKey> {
        if self.status.is_some() {
            return Vec::new();
        }
        let mut expired = Vec::new();
        for slot in &mut self.slots {
            if !is_final(slot.status) && slot.expected.deadline <= elapsed {
                slot.status = SlotStatus::Timeout;
                expired.push(slot.expected.key.clone());
            }
        }
        self.update_status();
        expired
    }

    /// Times out the slot `key`, unless the slot is final or the step is completed.
    pub fn expire_slot(&mut self, key: &SlotKey) {
        let open = |slot: &&mut StepSlot| slot.expected.key == *key && !is_final(slot.status);
        if self.status.is_none()
            && let Some(slot) = self.slots.iter_mut().find(open)
        {
            slot.status = SlotStatus::Timeout;
            self.update_status();
        }
    }

    /// Completes the step early: slots that are not final become errors.
    pub fn terminate(&mut self) {
        if self.status.is_some() {
            return;
        }
        for slot in self.slots.iter_mut().filter(|slot| !is_final(slot.status)) {
            slot.status = SlotStatus::Error;
        }
        self.status = Some(StepStatus::Terminated);
    }

    /// The slots with their status, in the order in which they were declared.
    pub fn slots(&self) -> impl Iterator<Item = (&ExpectedSlot, SlotStatus)> {
        self.slots.iter().map(|slot| (&slot.expected, slot.status))
    }

    /// The final status, or `None` while the step is open.
    pub fn status(&self) -> Option<StepStatus> {
        self.status
    }

    /// The completion of the step. Returned once, after the step has a final status.
    pub fn completion(&mut self) -> Option<StepCompleted> {
        let status = self.status.filter(|_| !self.completion_returned)?;
        self.completion_returned = true;
        let end = |slot: &StepSlot| SlotEnd {
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

    fn update_status(&mut self) {
        if self.status.is_some() || !self.slots.iter().all(|slot| is_final(slot.status)) {
            return;
        }
        let is_success = |slot: &&StepSlot| slot.status == SlotStatus::Success;
        let succeeded = self.slots.iter().filter(is_success).count();
        self.status = Some(if succeeded == self.slots.len() {
            StepStatus::Success
        } else if succeeded == 0 {
            StepStatus::Failed
        } else {
            StepStatus::PartialFailure
        });
    }
}

#[cfg(test)]
mod tests;
