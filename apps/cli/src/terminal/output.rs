//! Standard output whose reader may close it early, as `head` does. That is no error.

use std::io::{self, ErrorKind, Write as _};

/// Writes `text` to standard output; the rest is dropped if the reader has closed it.
pub(crate) fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// `result`, or success if the reader of standard output has closed it.
pub(crate) fn unless_closed(result: anyhow::Result<()>) -> anyhow::Result<()> {
    result.or_else(|error| match error.downcast_ref::<io::Error>() {
        Some(cause) if cause.kind() == ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })
}
