//! The small values that everything else is made of: ids, traces, times, days, positions in a log, actors, and job names.

pub mod id;
pub mod trace;
pub mod clock;
pub mod day;
pub mod position;
pub mod actor;
pub mod job_name;
