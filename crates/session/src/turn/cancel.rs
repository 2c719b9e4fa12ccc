//! Cancelling a turn: an [`early_cancel`] that precedes its submit, a [`queued_turn`] that ends
//! without running, the [`request`] to a running one, and the [`disconnect`] of its clients.

pub(crate) mod early_cancel;
pub(crate) mod queued_turn;
pub(crate) mod request;
pub(crate) mod disconnect;
