//! A database with both halves: the [`Log`] and the [`Records`] that its appends write.
//!
//! Callers that need one half take `&dyn Log`, `&dyn Records` or one of the records' parts; a
//! `&dyn Store` converts into each of them.

use crate::log::Log;
use crate::records::Records;

/// A log with its records. Implemented by every type that has both.
pub trait Store: Log + Records {}

impl<T: Log + Records> Store for T {}
