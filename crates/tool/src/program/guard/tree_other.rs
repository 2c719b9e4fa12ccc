//! The process tree on systems without `/proc` and subreapers: only the process group of the program
//! is known.

use std::io;

use rustix::process::{Pid, Signal, kill_process_group, setsid};

/// A running process; none can be found here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProcessEntry {
    pub(super) pid: Pid,
}

pub(super) fn adopt() -> io::Result<()> {
    // Fails for a process that already leads a group, which is as good.
    let _ = setsid();
    Ok(())
}

pub(super) fn become_subreaper() -> io::Result<()> {
    Ok(())
}

pub(super) fn children_of(_: Pid) -> Vec<Pid> {
    Vec::new()
}

pub(super) fn is_of_program(_: Pid) -> bool {
    false
}

pub(super) fn kill_trees(_: &[Pid]) -> Vec<Pid> {
    Vec::new()
}

pub(super) fn has_more_than(_: u64) -> bool {
    false
}

pub(super) fn terminate(group: Option<Pid>) -> Vec<ProcessEntry> {
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::TERM);
        let _ = kill_process_group(group, Signal::CONT);
    }
    Vec::new()
}

pub(super) fn kill(group: Option<Pid>) -> Vec<ProcessEntry> {
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    Vec::new()
}

/// Kills the process group of the program, for the server; other descendants are not known here.
pub(crate) fn kill_descendants(_guard: Pid, program: Option<Pid>) -> bool {
    kill(program);
    false
}
