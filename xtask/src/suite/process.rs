//! Ending a test with everything that it started, by process id.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

/// Kills a process and its descendants. On systems without `/proc` only the process itself.
pub fn kill_tree(pid: u32) {
    let mut doomed = vec![pid];
    let children = children();
    let mut at = 0;
    while let Some(parent) = doomed.get(at) {
        doomed.extend(children.get(parent).into_iter().flatten());
        at += 1;
    }
    let ids = doomed.iter().map(u32::to_string);
    // One that has ended in between is no failure.
    let _ = Command::new("kill").arg("-9").args(ids).status();
}

fn children() -> HashMap<u32, Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// The parent in a line of `/proc/<pid>/stat`; the name before it may hold anything.
fn parent(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn parent_is_parsed_after_any_process_name() {
        assert_eq!(parent("7 (a) b) S 42 7 7 0"), Some(42));
        assert_eq!(parent(""), None);
    }

    #[test]
    fn grandchild_is_killed_with_the_tree() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 300 & echo $! >&2; wait"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut output = String::new();
        let mut stderr = child.stderr.take().expect("a pipe");
        while !output.ends_with('\n') {
            let mut byte = [0];
            std::io::Read::read_exact(&mut stderr, &mut byte).expect("the id of the sleeper");
            output.push(char::from(byte[0]));
        }
        let sleeper: u32 = output.trim().parse().expect("an id");
        kill_tree(child.id());
        child.wait().expect("it ended");
        let since = Instant::now();
        let is_there = || {
            let stat = fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
            // A process that nobody has waited for yet is dead all the same.
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while is_there() {
            assert!(
                since.elapsed() < Duration::from_secs(10),
                "the sleeper lives"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
