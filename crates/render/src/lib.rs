//! The rendering policy: decides how each event of a turn is shown, before the log stores it.
//!
//! In: an event, and the policies that the turn was bound to at its start. Out: the same event,
//! marked with its policy, with its text if the event is a status, in an order that a person can
//! follow. A gate may mark, translate, join or briefly delay an event; it never drops one. Agents
//! emit status ids only; the text comes from the locale files of the pack.
//! `docs/decisions/0013-rendering-policy.md` gives the reasons.

mod event_policy;
mod policy_metrics;
mod policy_table;
mod filter;
mod sentence;
mod buffer;
mod block_filter;
mod gate;
mod policies;
mod status_list;

pub use buffer::{BUFFERED_STATUSES_MAX, BUFFERED_TEXT_BYTES_MAX};
pub use filter::{BUFFERED_CHARS_MAX, DenyList, TextFilter};
pub use policies::{FilterFactory, RenderPolicies};
pub use status_list::{StatusEntry, StatusText, status_list};

#[cfg(test)]
mod tests;
