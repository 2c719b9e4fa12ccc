//! The children of the server in the process table: those that were not its own are ended.

use std::collections::HashSet;
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

/// Reaps the orphans that have died. Kills the others with all their descendants if they come from a
/// program, and returns the killed ones. `list` reads the orphans: it is called again as long as new
/// ones appear, because a process that forks and exits again and again is another one each time.
pub(crate) fn end(mut list: impl FnMut() -> Vec<Pid>) -> Vec<Pid> {
    let (mut killed, mut died) = (Vec::new(), Vec::new());
    // Those that were seen and are not reaped: their ids are still their own.
    let mut seen: HashSet<Pid> = HashSet::new();
    for reading in 0..tree::CHILD_READS_MAX {
        let new: Vec<Pid> = list()
            .into_iter()
            .filter(|pid| !seen.contains(pid))
            .collect();
        if new.is_empty() {
            break;
        }
        let mut running = Vec::new();
        for pid in new {
            let is_of_program = tree::is_of_program(pid);
            if is_running(pid) {
                seen.insert(pid);
                if is_of_program {
                    tree::kill_child(pid);
                    running.push(pid);
                }
            } else if is_of_program && reading > 0 {
                // It died with those that were killed, or has left a child behind.
                died.push(pid);
            }
        }
        tree::kill_groups_of_children(&running);
        killed.extend(running);
    }
    if !killed.is_empty() {
        // Not with those that are reaped: their ids may be used again.
        killed.extend(tree::kill_trees(&killed));
    }
    killed.extend(died);
    killed.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
    killed.dedup();
    killed
}
