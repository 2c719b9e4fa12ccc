//! Programs of tools: [`guard`] is the process that ends a program with everything it started,
//! [`runner`] starts programs under guards, and `ProcessTool` is a tool that runs one.

pub mod guard;
pub mod runner;
mod tool;

pub(crate) use tool::ProcessTool;
