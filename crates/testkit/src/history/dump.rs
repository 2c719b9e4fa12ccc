//! A history written down for a person: one folder, one file a session with its log, one file a
//! client with all it was sent, one file with requests and faults.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use super::record::{ChatRequest, ConnectionEntry, History};

/// Writes it to a fresh folder that stays, and says where.
pub(super) fn write(history: &History) -> String {
    let folder = tempfile::Builder::new()
        .prefix("turnwire-history-")
        .tempdir();
    match folder.and_then(|folder| files(history, folder.path()).map(|()| folder.keep())) {
        Ok(path) => format!("written to {}", path.display()),
        Err(why) => format!("not written down: {why}"),
    }
}

fn files(history: &History, folder: &Path) -> std::io::Result<()> {
    let mut done = String::new();
    for fault in &history.faults {
        let _ = writeln!(done, "{:?} {:?}", fault.at, fault.kind);
    }
    for request in &history.requests {
        let _ = writeln!(
            done,
            "{:?} {} {} {} -> {:?}",
            request.at, request.method, request.path, request.body, request.answer
        );
    }
    std::fs::write(folder.join("requests.txt"), done)?;
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
                ConnectionEntry::Subscribed(ask) => writeln!(
                    text,
                    "> since {:?} snapshot {}",
                    ask.since.map(|s| s.to_string()),
                    ask.snapshot
                ),
                ConnectionEntry::Received(frame) => writeln!(text, "{:?} {}", frame.at, frame.text),
            };
        }
        let _ = writeln!(text, "= {:?}", connection.end);
        add(&folder.join(name), &text)?;
    }
    for (number, chat) in history.chats.iter().enumerate() {
        let turn = match (&chat.asked, &chat.head) {
            (ChatRequest::Resume(turn, _), _) => turn.to_string(),
            (ChatRequest::Submit(_), Some(head)) => head.header("x-response-id").to_owned(),
            (ChatRequest::Submit(_), None) => String::new(),
        };
        // A turn has two names; here all that is about it stands together.
        let turn = turn.rsplit('_').next().unwrap_or_default();
        let name = format!("chat.{turn}.{}.txt", chat.client.replace('/', "_"));
        let mut text = format!("chat {number}\n> {:?} {:?}\n", chat.asked, chat.version);
        let _ = writeln!(text, "{:?}", chat.head);
        for block in &chat.blocks {
            let _ = write!(text, "{:?}\n{}", block.at, block.text);
        }
        let tail = String::from_utf8_lossy(&chat.tail);
        let _ = writeln!(text, "= {tail:?} {:?}", chat.end);
        add(&folder.join(name), &text)?;
    }
    Ok(())
}

fn add(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(path)?;
    file.write_all(text.as_bytes())
}
