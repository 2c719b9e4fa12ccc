//! Cancels: before the submit, of a blocking tool, between message and tools, and of child tasks; and
//! waits for the end of a turn.

mod early;
mod parts;
mod seam;
mod wait;
mod child_tasks;
