//! Reading a session from a position: events from the store up to the ring's tail.

pub mod replay;
