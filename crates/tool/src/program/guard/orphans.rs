//! The children of the server in the process table: those that were not its own are ended.

use std::io;

use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use super::tree;

/// Makes this process the subreaper of its descendants.
pub(crate) fn become_subreaper() -> io::Result<()> {
    tree::become_subreaper()
}

/// The children of this process, also dead ones that are not reaped.
pub(crate) fn children() -> Vec<Pid> {
    tree::children_of(getpid())
}

/// Whether a child of this process is alive; reaps it if not. No other code may reap this child.
pub(crate) fn is_running(child: Pid) -> bool {
    matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(None))
}

/// Reaps those of `orphans` that have died. Kills the others with all their descendants if they come
/// from a program, and returns the killed ones.
pub(crate) fn end(orphans: &[Pid]) -> Vec<Pid> {
    let running = orphans.iter().copied().filter(|pid| is_running(*pid));
    let of_programs: Vec<Pid> = running.filter(|pid| tree::is_of_program(*pid)).collect();
    if of_programs.is_empty() {
        return Vec::new();
    }
    tree::kill_trees(&of_programs)
}
