//! A [`session`] in memory and its parts: the folded [`transcript`], the coalesced [`bus`] notices,
//! the [`child_tasks`] of its running turn, the [`turn_slot`] that runs one turn at a time, the
//! [`presence`] of its watchers; and what all sessions share: the [`turn_runner`] and the
//! [`response_claim`]s of turns that are answered elsewhere.

pub(crate) mod transcript;
pub(crate) mod bus;
pub(crate) mod bus_budget;
pub(crate) mod child_tasks;
pub(crate) mod turn_slot;
pub(crate) mod routing_policy;
pub(crate) mod response_claim;
pub(crate) mod presence;
pub(crate) mod turn_runner;
pub(crate) mod traced_sink;
pub(crate) mod session;
