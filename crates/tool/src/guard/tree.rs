//! Everything below the guard: adopting orphans, finding all that live, and signals to them.
//!
//! The tree is read from the process table by parents, from the guard down. A look is not atomic:
//! a process may be born or move to the guard meanwhile, so killing is repeated until the system
//! says that no child is left, which cannot be wrong.

use std::collections::HashMap;
use std::fs;
use std::io;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpgrp, getpid, kill_process_group, pidfd_open, pidfd_send_signal,
    set_child_subreaper, setsid,
};

/// Where a line of the table has the number of threads, counted from the state on.
const THREADS_FIELD: usize = 17;
/// Where it has the moment at which the process began.
const BEGAN_FIELD: usize = 19;

/// Looks at the guard's own children in one round of killing: each takes less than a millisecond.
const CHASES_MAX: usize = 32;

/// A process that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Found {
    pub(super) pid: Pid,
    parent: Pid,
    group: Option<Pid>,
    session: Option<Pid>,
    /// Together with the id it names one process and no other.
    began: Option<u64>,
}

/// From now on every orphan below comes to this process, and no signal to the server's group or
/// terminal reaches it.
pub(super) fn adopt() -> io::Result<()> {
    // It fails in a process that leads a group already, which is as good.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    Ok(())
}

/// All that live below this process.
pub(super) fn below() -> Vec<Found> {
    of(getpid())
}

/// All that live below `guard` or are in its session, and what is below those. A guard that is
/// dead has none below it, and still its session.
fn of(guard: Pid) -> Vec<Found> {
    let mut children: HashMap<Pid, Vec<Found>> = HashMap::new();
    let mut all = Vec::new();
    for found in table() {
        children.entry(found.parent).or_default().push(found);
        if found.session == Some(guard) && found.pid != guard {
            all.push(found);
        }
    }
    let mut next: Vec<Pid> = all.iter().map(|found| found.pid).collect();
    next.push(guard);
    while let Some(parent) = next.pop() {
        for found in children.remove(&parent).unwrap_or_default() {
            next.push(found.pid);
            all.push(found);
        }
    }
    once(all)
}

fn once(mut all: Vec<Found>) -> Vec<Found> {
    all.sort_unstable_by_key(|found| found.pid.as_raw_nonzero());
    all.dedup_by_key(|found| found.pid);
    all
}

/// Whether more than `most` live below. Only their own entries of the table are read, so that it
/// can be asked often; a system that does not list children has no answer, which is no.
pub(super) fn is_crowd(most: u64) -> bool {
    let mut count = 0;
    let mut next = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = next.pop() {
        for child in children(parent) {
            count += 1;
            if count > most {
                return true;
            }
            next.push(child);
        }
    }
    false
}

/// The children of a process, as the system lists them.
fn children(parent: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task"));
    let mut children = Vec::new();
    for task in tasks.into_iter().flatten().flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let ids = list.split_ascii_whitespace();
        children.extend(ids.filter_map(|child| child.parse::<i32>().ok()));
    }
    children
}

/// Asks all that live below to end, each once: many take a second TERM for haste. `group` is the
/// program's own, as long as its leader is not reaped; it gets the signal as one.
pub(super) fn ask(group: Option<Pid>) -> Vec<Found> {
    let mut all = below();
    if let Some(group) = group {
        send(group, Signal::TERM);
        send(group, Signal::CONT);
    }
    // Some may have been born, or have moved between two reads of the table.
    all.extend(below());
    let all = once(all);
    let outside = all
        .iter()
        .filter(|found| group.is_none() || found.group != group);
    for found in outside {
        signal(found, Signal::TERM);
        // One that is stopped goes on, so that it can end.
        signal(found, Signal::CONT);
    }
    all
}

/// Kills all that live below.
pub(super) fn kill(group: Option<Pid>) -> Vec<Found> {
    kill_of(getpid(), group)
}

/// Kills what is left of the program of a guard that did not do it, for the server; says whether
/// there was anything. The guard itself is spared, so that orphans still come to it, and must not
/// have been reaped, so that its id is its own.
pub(crate) fn kill_rest(guard: Pid, _program: Option<Pid>) -> bool {
    !kill_of(guard, None).is_empty()
}

/// Group by group, because a group dies at once and one by one a crowd may grow faster than it
/// dies.
fn kill_of(guard: Pid, group: Option<Pid>) -> Vec<Found> {
    let chased = chase(guard);
    let mut all = of(guard);
    let mut groups: Vec<Pid> = all.iter().filter_map(|found| found.group).collect();
    groups.extend(group);
    groups.sort_unstable_by_key(|group| group.as_raw_nonzero());
    groups.dedup();
    // A program may have joined the group of its guard; then it dies alone.
    let spared = [Some(guard), Some(getpgrp())];
    for group in groups
        .into_iter()
        .filter(|group| !spared.contains(&Some(*group)))
    {
        send(group, Signal::KILL);
    }
    for found in &all {
        signal(found, Signal::KILL);
    }
    all.extend(chased);
    once(all)
}

/// Kills the guard's own children, found by one short list and not by the whole table. A process
/// that forks and ends, again and again, is the guard's child each time, and gone before a look
/// through the table is over.
fn chase(guard: Pid) -> Vec<Found> {
    let mut killed: Vec<Found> = Vec::new();
    for _ in 0..CHASES_MAX {
        let own = children(guard.as_raw_nonzero().get());
        let fresh = |pid: &i32| {
            killed
                .iter()
                .all(|old| old.pid.as_raw_nonzero().get() != *pid)
        };
        let fresh: Vec<Found> = own.into_iter().filter(fresh).filter_map(read).collect();
        if fresh.is_empty() {
            break;
        }
        for found in fresh {
            signal(&found, Signal::KILL);
            killed.push(found);
        }
    }
    killed
}

fn send(group: Pid, signal: Signal) {
    // A group that is gone needs none.
    let _ = kill_process_group(group, signal);
}

/// To this process and no other: an id may have got a new owner since the look, a handle cannot.
fn signal(found: &Found, signal: Signal) {
    let Ok(handle) = pidfd_open(found.pid, PidfdFlags::empty()) else {
        return;
    };
    let now = read(found.pid.as_raw_nonzero().get());
    if now.is_some_and(|now| now.began == found.began) {
        let _ = pidfd_send_signal(handle, signal);
    }
}

fn table() -> Vec<Found> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(read).collect()
}

fn read(pid: i32) -> Option<Found> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &line)
}

/// `pid (any name) state parent group …`; a name may hold anything, brackets too. What is dead
/// and waits to be reaped does not count; one whose first thread has ended while others run looks
/// the same but for its number of threads, and lives.
fn parse(pid: i32, line: &[u8]) -> Option<Found> {
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let threads = fields.get(THREADS_FIELD).and_then(|many| many.parse().ok());
    match *fields.first()? {
        "X" | "x" => return None,
        "Z" if threads.is_none_or(|many: u64| many < 2) => return None,
        _ => {}
    }
    let id = |at: usize| Some(Pid::from_raw(fields.get(at)?.parse().ok()?));
    let (parent, group, session) = (id(1)??, id(2)?, id(3)?);
    Some(Found {
        pid: Pid::from_raw(pid)?,
        parent,
        group,
        session,
        began: fields.get(BEGAN_FIELD).and_then(|at| at.parse().ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(line: &str) -> Option<(i32, i32, i32)> {
        let raw = |pid: Pid| pid.as_raw_nonzero().get();
        let found = parse(7, line.as_bytes())?;
        Some((raw(found.pid), raw(found.parent), raw(found.group?)))
    }

    #[test]
    fn a_name_cannot_lie_about_its_parent() {
        assert_eq!(ids("7 (sh) S 5 6 6 0 -1"), Some((7, 5, 6)));
        assert_eq!(ids("7 (a) Z 1 1) S 5 6 6 0 -1"), Some((7, 5, 6)));
        assert_eq!(ids("7 (sh) Z 5 6 6 0 -1"), None);
        // The first thread has ended, and another one has not; then none has.
        let headless = "7 (sh) Z 5 6 6 0 -1 4 0 0 0 0 1 2 0 0 20 0";
        assert_eq!(ids(&format!("{headless} 2 0 99")), Some((7, 5, 6)));
        assert_eq!(ids(&format!("{headless} 1 0 99")), None);
        assert_eq!(ids("7 (kthreadd) S 0 0 0"), None);
        assert_eq!(ids("7 (sh"), None);
        assert_eq!(ids(""), None);
    }

    #[test]
    fn the_table_has_this_process_but_not_below_itself() {
        let own = getpid();
        assert!(table().iter().any(|found| found.pid == own));
        assert!(below().iter().all(|found| found.pid != own));
    }
}
