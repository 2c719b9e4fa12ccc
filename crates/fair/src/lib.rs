//! What many owners share, so that no owner can take it all.
//!
//! [`FairSlots`] bounds a resource (reads of the database, programs, turns in flight) twice: in all,
//! and per owner. Who cannot have a slot at once is refused or waits; a slot that becomes free goes
//! to the waiting owner that holds the fewest. [`Rates`] bounds what each owner uses per window of time.

pub mod rates;
pub mod slots;

pub use rates::{RateExceeded, RateState, Rates};
pub use slots::{FairLimits, FairRefusal, FairSlot, FairSlots};
