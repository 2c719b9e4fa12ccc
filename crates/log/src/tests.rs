//! The tests that every database runs: one conformance suite for the [`Log`](crate::Log), one for the
//! [`Records`](crate::Records), and the batches that both append.

pub(crate) mod fixture;
pub(crate) mod log_conformance;
pub(crate) mod records_conformance;
