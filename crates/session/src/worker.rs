//! Workers: sessions that a turn delegates a task to.

pub(crate) mod worker_run;
mod delegate;
