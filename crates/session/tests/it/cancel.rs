//! Cancels: before the submit, of a blocking tool, between message and tools, and of child tasks.

mod early;
mod parts;
mod seam;
mod child_tasks;
