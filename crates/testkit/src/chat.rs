//! Clients of the chat wire: server-sent events on a raw socket, read by an independent parser that
//! accounts for every byte. Each records everything it receives in the journal and has
//! a deadline.

mod submit;
mod stream;
mod viewer;
mod open_streams;

pub use open_streams::open_streams;
pub use stream::{ChatRefused, ChatStream, ChatStreamEnd};
pub use submit::{ChatSubmit, CursorPlacement};
pub use viewer::{ChatViewer, ViewerPosition};

pub use crate::sse::{Block, Garbled, Head, Parser, Said, begins};
