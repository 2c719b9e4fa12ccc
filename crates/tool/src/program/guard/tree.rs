//! The descendants of the guard: becoming their subreaper, listing them, and signals to them.
//!
//! The tree is read from the process table, from the guard down. Reading is not atomic: a process may
//! start or become a child of the guard meanwhile, so killing is repeated until the system reports
//! that no child is left, which is always right.

use std::collections::HashMap;
use std::fs;
use std::io;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpgid, getpgrp, getpid, kill_process, kill_process_group,
    pidfd_open, pidfd_send_signal, set_child_subreaper, setsid,
};

/// The field of `/proc/PID/stat` with the number of threads, counted from the state.
const THREADS_FIELD: usize = 17;
/// The field with the start time of the process.
const START_TIME_FIELD: usize = 19;

/// Reads of the guard's own children in one round of killing; each takes less than a millisecond.
pub(super) const CHILD_READS_MAX: usize = 32;

/// A running process, as the process table shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProcessEntry {
    pub(super) pid: Pid,
    parent: Pid,
    group: Option<Pid>,
    session: Option<Pid>,
    /// Identifies one process together with the id.
    start_time: Option<u64>,
}

/// Makes this process the subreaper of its descendants, in a session of its own, so that no signal
/// to the server's group or terminal reaches it.
pub(super) fn adopt() -> io::Result<()> {
    // Fails for a process that already leads a group, which is as good.
    let _ = setsid();
    become_subreaper()
}

/// Orphaned descendants of this process become its children.
pub(super) fn become_subreaper() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    Ok(())
}

/// The descendants of `guard`, the processes of its session, and their descendants. A dead guard has
/// no descendants, but its session.
fn descendants_of(guard: Pid) -> Vec<ProcessEntry> {
    let mut children: HashMap<Pid, Vec<ProcessEntry>> = HashMap::new();
    let mut all = Vec::new();
    for process in process_table() {
        children.entry(process.parent).or_default().push(process);
        if process.session == Some(guard) && process.pid != guard {
            all.push(process);
        }
    }
    let mut parents: Vec<Pid> = all.iter().map(|process| process.pid).collect();
    parents.push(guard);
    while let Some(parent) = parents.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid);
            all.push(process);
        }
    }
    distinct(all)
}

/// The children of `parent`, also dead ones that are not reaped.
pub(super) fn children_of(parent: Pid) -> Vec<Pid> {
    let children = children(parent.as_raw_nonzero().get());
    children.into_iter().filter_map(Pid::from_raw).collect()
}

/// Whether a process comes from a program: programs cannot gain privileges, and neither can what
/// they start. True on a system that does not tell.
pub(super) fn is_of_program(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix("NoNewPrivs:"));
    value.is_none_or(|value| value.trim() != "0")
}

/// Kills a child of this process that is not reaped: its id is still its own.
pub(super) fn kill_child(child: Pid) {
    let _ = kill_process(child, Signal::KILL);
}

/// Kills the groups of children that are not reaped, which may be dead. Spares the group of this
/// process.
pub(super) fn kill_groups_of_children(children: &[Pid]) {
    let groups = children
        .iter()
        .filter_map(|child| getpgid(Some(*child)).ok());
    let mut groups: Vec<Pid> = groups.filter(|group| *group != getpgrp()).collect();
    groups.sort_unstable_by_key(|group| group.as_raw_nonzero());
    groups.dedup();
    for group in groups {
        send(group, Signal::KILL);
    }
}

/// Kills `roots` and all their descendants, and returns the killed ones.
pub(super) fn kill_trees(roots: &[Pid]) -> Vec<Pid> {
    let mut children: HashMap<Pid, Vec<ProcessEntry>> = HashMap::new();
    let mut all = Vec::new();
    for process in process_table() {
        children.entry(process.parent).or_default().push(process);
        if roots.contains(&process.pid) {
            all.push(process);
        }
    }
    let mut parents: Vec<Pid> = roots.to_vec();
    while let Some(parent) = parents.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid);
            all.push(process);
        }
    }
    let all = distinct(all);
    kill_groups_and_processes(&all, &[getpgrp()]);
    all.into_iter().map(|process| process.pid).collect()
}

fn distinct(mut processes: Vec<ProcessEntry>) -> Vec<ProcessEntry> {
    processes.sort_unstable_by_key(|process| process.pid.as_raw_nonzero());
    processes.dedup_by_key(|process| process.pid);
    processes
}

/// Whether there are more than `limit` descendants. Only their own entries are read, so that it can
/// be called often; false on a system that does not list children.
pub(super) fn has_more_than(limit: u64) -> bool {
    let mut count = 0;
    let mut parents = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for child in children(parent) {
            count += 1;
            if count > limit {
                return true;
            }
            parents.push(child);
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

/// Sends TERM to all descendants, once each: many programs exit at once at a second TERM. `group` is
/// the process group of the program while its leader is not reaped; it gets one signal.
pub(super) fn terminate(group: Option<Pid>) -> Vec<ProcessEntry> {
    let mut all = descendants_of(getpid());
    if let Some(group) = group {
        send(group, Signal::TERM);
        send(group, Signal::CONT);
    }
    // Some may have started, or got another parent, between two reads of the table.
    all.extend(descendants_of(getpid()));
    let all = distinct(all);
    let others = all
        .iter()
        .filter(|process| group.is_none() || process.group != group);
    for process in others {
        signal(process, Signal::TERM);
        // A stopped process continues, so that it can exit.
        signal(process, Signal::CONT);
    }
    all
}

/// Kills all descendants and returns them.
pub(super) fn kill(group: Option<Pid>) -> Vec<ProcessEntry> {
    kill_descendants_of(getpid(), group)
}

/// Kills the descendants of a guard that did not do it, for the server; false if there were none.
/// The guard itself survives as their subreaper, and must not have been reaped, so that its id is
/// still its own.
pub(crate) fn kill_descendants(guard: Pid, _program: Option<Pid>) -> bool {
    !kill_descendants_of(guard, None).is_empty()
}

/// Kills whole groups, because a group dies at once, while processes that fork may multiply faster
/// than they are killed one by one.
fn kill_descendants_of(guard: Pid, group: Option<Pid>) -> Vec<ProcessEntry> {
    let killed_children = kill_children(guard);
    let mut all = descendants_of(guard);
    if let Some(group) = group {
        send(group, Signal::KILL);
    }
    // A program that has joined the group of its guard is killed alone.
    kill_groups_and_processes(&all, &[guard, getpgrp()]);
    all.extend(killed_children);
    distinct(all)
}

/// Kills the groups of `processes` except those in `spared`, then each process.
fn kill_groups_and_processes(processes: &[ProcessEntry], spared: &[Pid]) {
    let groups = processes.iter().filter_map(|process| process.group);
    let mut groups: Vec<Pid> = groups.filter(|group| !spared.contains(group)).collect();
    groups.sort_unstable_by_key(|group| group.as_raw_nonzero());
    groups.dedup();
    for group in groups {
        send(group, Signal::KILL);
    }
    for process in processes {
        signal(process, Signal::KILL);
    }
}

/// Kills the guard's own children, which are read from one short list instead of the whole table. A
/// process that forks and exits again and again is the guard's child each time, and has exited before
/// the whole table is read.
fn kill_children(guard: Pid) -> Vec<ProcessEntry> {
    let mut killed: Vec<ProcessEntry> = Vec::new();
    for _ in 0..CHILD_READS_MAX {
        let own = children(guard.as_raw_nonzero().get());
        let own = own.into_iter().filter_map(read);
        let is_new = |own: &ProcessEntry| killed.iter().all(|process| process.pid != own.pid);
        let new: Vec<ProcessEntry> = own.filter(is_new).collect();
        if new.is_empty() {
            break;
        }
        for process in new {
            signal(&process, Signal::KILL);
            killed.push(process);
        }
    }
    killed
}

fn send(group: Pid, signal: Signal) {
    // Fails for a group without processes.
    let _ = kill_process_group(group, signal);
}

/// Signals this process and no other: its id may have been reused since it was read, its handle
/// cannot.
fn signal(process: &ProcessEntry, signal: Signal) {
    let Ok(handle) = pidfd_open(process.pid, PidfdFlags::empty()) else {
        return;
    };
    let now = read(process.pid.as_raw_nonzero().get());
    if now.is_some_and(|now| now.start_time == process.start_time) {
        let _ = pidfd_send_signal(handle, signal);
    }
}

fn process_table() -> Vec<ProcessEntry> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(read).collect()
}

fn read(pid: i32) -> Option<ProcessEntry> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &line)
}

/// Parses `pid (name) state parent group …`; the name may contain anything, brackets too. `None` for
/// a zombie. A process whose first thread has exited while others run differs from a zombie only in
/// its number of threads, and counts.
fn parse(pid: i32, line: &[u8]) -> Option<ProcessEntry> {
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let threads = fields
        .get(THREADS_FIELD)
        .and_then(|count| count.parse().ok());
    match *fields.first()? {
        "X" | "x" => return None,
        "Z" if threads.is_none_or(|count: u64| count < 2) => return None,
        _ => {}
    }
    let id = |at: usize| Some(Pid::from_raw(fields.get(at)?.parse().ok()?));
    let (parent, group, session) = (id(1)??, id(2)?, id(3)?);
    Some(ProcessEntry {
        pid: Pid::from_raw(pid)?,
        parent,
        group,
        session,
        start_time: fields.get(START_TIME_FIELD).and_then(|at| at.parse().ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(line: &str) -> Option<(i32, i32, i32)> {
        let raw = |pid: Pid| pid.as_raw_nonzero().get();
        let process = parse(7, line.as_bytes())?;
        let (pid, parent) = (process.pid, process.parent);
        Some((raw(pid), raw(parent), raw(process.group?)))
    }

    #[test]
    fn process_name_cannot_fake_its_parent() {
        assert_eq!(ids("7 (sh) S 5 6 6 0 -1"), Some((7, 5, 6)));
        assert_eq!(ids("7 (a) Z 1 1) S 5 6 6 0 -1"), Some((7, 5, 6)));
        assert_eq!(ids("7 (sh) Z 5 6 6 0 -1"), None);
        // The first thread has exited: with a second thread, and without.
        let headless = "7 (sh) Z 5 6 6 0 -1 4 0 0 0 0 1 2 0 0 20 0";
        assert_eq!(ids(&format!("{headless} 2 0 99")), Some((7, 5, 6)));
        assert_eq!(ids(&format!("{headless} 1 0 99")), None);
        assert_eq!(ids("7 (kthreadd) S 0 0 0"), None);
        assert_eq!(ids("7 (sh"), None);
        assert_eq!(ids(""), None);
    }

    #[test]
    fn process_table_has_this_process_but_not_as_descendant() {
        let own = getpid();
        assert!(process_table().iter().any(|process| process.pid == own));
        assert!(
            descendants_of(getpid())
                .iter()
                .all(|process| process.pid != own)
        );
    }
}
