//! The server's own log: what is told, and in which form.

use super::setting::section::section;
use super::setting::value::{choice, words};

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For machines, one object a line.
    Json,
}

const FORMAT: &[(&str, Format)] = &[("text", Format::Text), ("json", Format::Json)];

section! {
    /// The server's own log.
    Log, "log" {
        /// Levels by module, as in `info,turnwire_session=debug`; also `TURNWIRE_LOG`.
        filter: String = "info", words;
        /// `text` or `json`.
        format: Format = "text", choice(FORMAT);
    }
}
