//! Reading a live session: [`viewer`] says who reads, [`replay`] reads the events after a cursor up to the ring's tail,
//! [`snapshot`] the state at the tail, [`family`] the relation of a session to its workers,
//! [`worker_result`] how the task of a worker ended.

pub(crate) mod viewer;
pub(crate) mod replay;
mod snapshot;
pub(crate) mod family;
pub(crate) mod worker_result;
