//! Parses the system calls of a server as `strace` logs them: which events were written to the
//! store, when they were made durable, and when their first byte went to a socket.
//!
//! The tracer stops a process at the entry and the exit of each call and writes the lines in that
//! order, so the order of lines is the order in which things happened.

use std::collections::HashMap;
use std::path::Path;

/// The `strace` arguments for the output that this module parses.
pub fn arguments(file: &Path) -> Vec<String> {
    let calls = "trace=fsync,fdatasync,write,writev,sendto,sendmsg,pwrite64";
    let file = file.to_str().expect("a path").to_owned();
    [
        "-f", "-qq", "-ttt", "-yy", "-s", "1000000", "-e", calls, "-o",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([file])
    .collect()
}

/// A persisted event: its session and id.
pub type EventKey = (String, String);

/// When events were written, synced and sent, by line number of the log.
#[derive(Debug, Default)]
pub struct StraceLog {
    /// By event, the line that wrote it to the store.
    pub written: HashMap<EventKey, usize>,
    /// By event, the line at which a later sync had succeeded.
    pub synced: HashMap<EventKey, usize>,
    /// By event, the line that first sent it to a socket.
    pub sent: HashMap<EventKey, usize>,
    /// The lines at which a sync succeeded.
    pub syncs: Vec<usize>,
    /// When the first sync failed.
    pub failed: Option<f64>,
    /// The time of the last line.
    pub last: f64,
}

impl StraceLog {
    /// Parses the output file of `strace`.
    pub fn read(file: &Path) -> Self {
        let bytes = std::fs::read(file).expect("a trace");
        let text = String::from_utf8_lossy(&bytes);
        let mut trace = Self::default();
        // By thread, the line at which its sync began.
        let mut syncing: HashMap<&str, usize> = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            // Short process ids are padded.
            let Some((thread, line_tail)) = line.split_once(' ') else {
                continue;
            };
            let Some((time, call)) = line_tail.trim_start().split_once(' ') else {
                continue;
            };
            let call = call.trim_start();
            trace.last = time.parse().unwrap_or(trace.last);
            let begins = call.starts_with("fsync(") || call.starts_with("fdatasync(");
            if begins {
                syncing.insert(thread, number);
            }
            let resumes = call.starts_with("<... fsync") || call.starts_with("<... fdatasync");
            if (begins && !call.ends_with("<unfinished ...>")) || resumes {
                let sync_started = syncing.remove(thread).unwrap_or(number);
                trace.sync(sync_started, number, call);
            } else if call.starts_with("pwrite64(") {
                trace.record_first(number, call, |trace| &mut trace.written);
            } else if call.contains("<TCP:") || call.contains("<TCPv6:") {
                trace.record_first(number, call, |trace| &mut trace.sent);
            }
        }
        trace
    }

    fn sync(&mut self, sync_started: usize, ended: usize, call: &str) {
        if !call.contains("= 0") {
            self.failed = self.failed.or(Some(self.last));
            return;
        }
        self.syncs.push(ended);
        let fresh = self
            .written
            .iter()
            .filter(|(_, line)| **line < sync_started);
        let fresh: Vec<EventKey> = fresh.map(|(key, _)| key.clone()).collect();
        for key in fresh {
            self.synced.entry(key).or_insert(ended);
        }
    }

    fn record_first(
        &mut self,
        number: usize,
        call: &str,
        map: impl Fn(&mut Self) -> &mut HashMap<EventKey, usize>,
    ) {
        for key in keys(call) {
            map(self).entry(key).or_insert(number);
        }
    }

    /// Events that were sent to a socket before they were durable.
    pub fn early(&self) -> Vec<&EventKey> {
        let durable =
            |key: &EventKey, sent: usize| self.synced.get(key).is_some_and(|&synced| synced < sent);
        self.sent
            .iter()
            .filter(|(key, sent)| !durable(key, **sent))
            .map(|(key, _)| key)
            .collect()
    }
}

/// The persisted events whose bytes are among a call's; `strace` escapes their quotes.
fn keys(call: &str) -> Vec<EventKey> {
    const ID: &str = r#"{\"id\":\"evt_"#;
    const SESSION: &str = r#"\"session_id\":\""#;
    let mut keys = Vec::new();
    for (at, _) in call.match_indices(ID) {
        let line_tail = &call[at + ID.len()..];
        // Fourteen characters and the quote: a transient event's id is longer.
        let Some(id) = line_tail
            .get(..14)
            .filter(|_| line_tail.get(14..16) == Some("\\\""))
        else {
            continue;
        };
        let session = line_tail.get(..200).unwrap_or(line_tail);
        let session = session
            .find(SESSION)
            .and_then(|at| session.get(at + SESSION.len()..at + SESSION.len() + 31));
        if let Some(session) = session {
            keys.push((session.to_owned(), id.to_owned()));
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> StraceLog {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace");
        std::fs::write(&path, lines.join("\n")).expect("written");
        StraceLog::read(&path)
    }

    fn event(id: &str) -> String {
        format!(
            r#"{{\"id\":\"evt_{id}\",\"type\":\"x\",\"session_id\":\"sess_00000000000000000000000001\""#
        )
    }

    #[test]
    fn event_is_durable_after_a_sync_started_later() {
        let write = format!(
            "7 1.0 pwrite64(5</x-wal>, \"{}\", 9, 0) = 9",
            event("00010000000001")
        );
        let send = format!(
            "8 1.4 sendto(9<TCP:[a->b]>, \"{}\", 9, 0, NULL, 0) = 9",
            event("00010000000001")
        );
        let unfinished = "7  1.1 fdatasync(5</x-wal> <unfinished ...>";
        let ended = "7 1.2 <... fdatasync resumed>) = 0";
        assert_eq!(read(&[&write, unfinished, ended, &send]).early().len(), 0);
        assert_eq!(read(&[&write, unfinished, &send, ended]).early().len(), 1);
        assert_eq!(read(&[unfinished, &write, ended, &send]).early().len(), 1);
        assert_eq!(read(&[&write, &send]).early().len(), 1);
        let failed = read(&[
            &write,
            "7 1.1 fsync(5</x-wal>) = -1 EIO (Input/output error) (INJECTED)",
            &send,
        ]);
        assert_eq!((failed.early().len(), failed.failed), (1, Some(1.1)));
    }

    #[test]
    fn transient_events_are_ignored() {
        let send = format!(
            "8 1.4 sendto(9<TCP:[a->b]>, \"{}\", 9, 0, NULL, 0) = 9",
            event("00010000000001.000002")
        );
        assert_eq!(read(&[&send]).sent.len(), 0);
    }
}
