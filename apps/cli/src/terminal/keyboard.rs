//! The terminal that a person types at: its width, and the keys that were pressed too early.

use std::io;

use rustix::termios::{QueueSelector, tcflush, tcgetwinsize};

/// The width of a terminal that does not report one.
const COLUMNS_DEFAULT: usize = 80;

/// The width of the terminal at standard error.
pub(crate) fn columns() -> usize {
    match tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        Ok(_) | Err(_) => COLUMNS_DEFAULT,
    }
}

/// Discards what was typed and not yet read, also a line without its end: it was typed before the
/// question that comes next.
pub(crate) fn discard_typed() {
    // An input that is no terminal has no such queue.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}
