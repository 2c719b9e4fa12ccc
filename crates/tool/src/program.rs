//! Programs of tools: [`guard`] is the process that ends a program with everything it started,
//! `orphans` ends what loses its guard, [`runner`] starts programs under guards, and `ProcessTool` is
//! a tool that runs one.

mod lookup;
pub mod guard;
mod orphans;
pub mod runner;
mod tool;

pub use lookup::find_program;
pub use orphans::OrphanReaper;

pub(crate) use tool::ProcessTool;
