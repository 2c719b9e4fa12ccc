//! Running a turn: [`turn_run`] is the task around its producer, [`start`] the step that starts it.

pub(crate) mod turn_run;
pub(crate) mod start;
