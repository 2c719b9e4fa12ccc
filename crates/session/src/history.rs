//! The messages of earlier turns, as the agents of a new turn read them: [`cache`] keeps them
//! between turns within the [`budget`] of all sessions, [`select`] picks those within a budget, [`view`] answers the agents' port.

pub(crate) mod select;
pub(crate) mod budget;
pub(crate) mod cache;
pub(crate) mod view;
