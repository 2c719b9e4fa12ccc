//! Settings of the server's own log.

use super::setting::{choice, non_empty, section};

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Plain text for people.
    Text,
    /// One JSON object per line.
    Json,
}

const FORMAT: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];

section! {
    /// The server's own log.
    Log, "log" {
        /// Log levels by module, as in `info,turnwire_session=debug`; also `TURNWIRE_LOG`.
        filter: String = "info", non_empty;
        /// Format of log lines: `text` or `json`.
        format: LogFormat = "text", choice(FORMAT);
    }
}
