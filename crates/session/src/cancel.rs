//! Cancelling a turn: on request, before its submit arrives, and when its clients disconnect.

pub(crate) mod early_cancel;
pub mod request;
pub mod disconnect;
