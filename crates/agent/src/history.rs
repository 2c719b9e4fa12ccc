//! Earlier messages of the session, in the form that models accept.

pub(crate) mod conversation;
pub(crate) mod prior_context;
