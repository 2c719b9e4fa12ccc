//! Slots that many owners share, so that no owner can take them all.
//!
//! [`FairSlots`] bounds a resource (reads of the database, programs, turns in flight) twice: in all,
//! and per owner. Who cannot have a slot at once is refused or waits; a slot that becomes free goes
//! to the waiting owner that holds the fewest.

pub mod slots;

pub use slots::{FairLimits, FairRefusal, FairSlot, FairSlots};
