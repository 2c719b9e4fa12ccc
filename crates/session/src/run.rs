//! Running a turn: the task around its producer, and the step that starts it.

pub(crate) mod turn_run;
pub mod start;
