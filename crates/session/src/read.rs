//! Reading a live session: [`replay`] reads the events after a cursor up to the ring's tail,
//! [`snapshot`] the state at the tail, [`family`] the relation of a session to its workers.

pub(crate) mod replay;
mod snapshot;
pub(crate) mod family;
