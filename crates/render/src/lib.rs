//! The interceptor: what stands between every emitter and the log and says how an event is shown.
//!
//! In: an event on its way, and the table of policies that its turn was bound to. Out: the same
//! event with its stamp, its words if it is a status, and in an order that a person can follow.
//! An event may be stamped, worded, joined or held a little; it is never swallowed, and no agent
//! writes a word of a status. `docs/decisions/0013-rendering-policy.md` says why.

mod kind;
mod meter;
mod table;
mod filter;
mod sentence;
mod hold;
mod speech;
mod gate;
mod policies;
mod list;

pub use filter::{DenyList, HELD_CHARS_MAX, TextFilter};
pub use hold::{HELD_STATUSES_MAX, HELD_TEXT_BYTES_MAX};
pub use list::{StatusEntry, StatusText, status_list};
pub use policies::{Filters, Policies};

#[cfg(test)]
mod stage;
