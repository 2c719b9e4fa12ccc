//! One plan step: expected slots, each with a deadline; results in any order; one completion.
//!
//! `Step` is the state machine and knows no time but what it is told, no model and no wire.
//! `Run` drives futures through one: each on a task of its own, so that one that breaks or
//! lingers ends alone.

pub mod step;
pub mod run;

pub use run::{End, Ended, Run, Work};
pub use step::{Expected, Key, Revision, Said, SlotTaken, Step, Taken};
