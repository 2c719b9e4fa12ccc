//! One plan step: a set of expected slots, each with a deadline, and exactly one completion.
//!
//! [`Step`] is the state machine: results arrive in any order, and time is an argument. [`StepRun`]
//! drives one future per slot through a [`Step`], each on its own task, so that a future that
//! panics or hangs does not affect the others. This crate knows no model and no wire.

pub mod step;
pub mod run;

pub use run::{FinishedSlot, SlotOutcome, SlotWork, StepRun};
pub use step::{
    DuplicateSlot, ExpectedSlot, ReportEffect, ResultRevision, SlotKey, SlotReport, Step,
};
