//! A database with all of its contracts: the [`Log`], the [`Records`] that its appends write, and the
//! [`Maintenance`] that removes both.
//!
//! Callers that need one of them take `&dyn Log`, `&dyn Records` or one of the records' parts; a
//! `&dyn Store` converts into each of them.

use crate::log::Log;
use crate::maintenance::Maintenance;
use crate::records::Records;

/// A log with its records and their maintenance. Implemented by every type that has the three.
pub trait Store: Log + Records + Maintenance {}

impl<T: Log + Records + Maintenance> Store for T {}
