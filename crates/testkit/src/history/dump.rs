//! Writes a history to files for debugging: one file per session with its log, one file per client
//! with everything it received, and one file with requests and faults.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use super::record::{ChatRequest, ConnectionEntry, History};

/// Writes the history to a new temporary folder that is kept, and returns a message with its path.
pub(super) fn write(history: &History) -> String {
    let folder = tempfile::Builder::new()
        .prefix("turnwire-history-")
        .tempdir();
    match folder.and_then(|folder| write_files(history, folder.path()).map(|()| folder.keep())) {
        Ok(path) => format!("written to {}", path.display()),
        Err(why) => format!("not written: {why}"),
    }
}

fn write_files(history: &History, folder: &Path) -> std::io::Result<()> {
    let mut requests = String::new();
    for fault in &history.faults {
        let _ = writeln!(requests, "{:?} {:?}", fault.at, fault.kind);
    }
    for request in &history.requests {
        let _ = writeln!(
            requests,
            "{:?} {} {} {} -> {:?}",
            request.at, request.method, request.path, request.body, request.answer
        );
    }
    std::fs::write(folder.join("requests.txt"), requests)?;
    for log in &history.sessions {
        let mut text = String::new();
        for logged in &log.events {
            let _ = writeln!(text, "{}", logged.text);
        }
        for row in log.messages.iter().chain(&log.turns).chain(&log.tool_calls) {
            let _ = writeln!(text, "{row}");
        }
        std::fs::write(folder.join(format!("{}.log.txt", log.id)), text)?;
    }
    for (number, connection) in history.connections.iter().enumerate() {
        let name = format!(
            "{}.{}.txt",
            connection.session,
            connection.client.replace('/', "_")
        );
        let mut text = format!("connection {number}\n");
        for line in &connection.lines {
            let _ = match line {
                ConnectionEntry::Subscribed(subscribe) => writeln!(
                    text,
                    "> since {:?} snapshot {}",
                    subscribe.since.map(|s| s.to_string()),
                    subscribe.snapshot
                ),
                ConnectionEntry::Received(frame) => writeln!(text, "{:?} {}", frame.at, frame.text),
            };
        }
        let _ = writeln!(text, "= {:?}", connection.end);
        append(&folder.join(name), &text)?;
    }
    for (number, chat) in history.chats.iter().enumerate() {
        let turn = match (&chat.request, &chat.head) {
            (ChatRequest::Resume(turn, _), _) => turn.to_string(),
            (ChatRequest::Submit(_), Some(head)) => head.header("x-response-id").to_owned(),
            (ChatRequest::Submit(_), None) => String::new(),
        };
        // A turn has a turn id and a response id; use one of them in file names.
        let turn = turn.rsplit('_').next().unwrap_or_default();
        let name = format!("chat.{turn}.{}.txt", chat.client.replace('/', "_"));
        let mut text = format!("chat {number}\n> {:?} {:?}\n", chat.request, chat.version);
        let _ = writeln!(text, "{:?}", chat.head);
        for block in &chat.blocks {
            let _ = write!(text, "{:?}\n{}", block.at, block.text);
        }
        let tail = String::from_utf8_lossy(&chat.tail);
        let _ = writeln!(text, "= {tail:?} {:?}", chat.end);
        append(&folder.join(name), &text)?;
    }
    Ok(())
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(path)?;
    file.write_all(text.as_bytes())
}
