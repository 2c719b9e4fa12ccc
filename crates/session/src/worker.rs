//! Workers: sessions that a turn delegates a task to. [`delegate`] creates them, [`worker_run`] is
//! one at work.

pub(crate) mod worker_run;
pub(crate) mod delegate;
