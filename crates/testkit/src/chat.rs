//! Viewers of a turn over its chat stream: server-sent events on a raw socket, read by a parser
//! of its own that accounts for every byte. Each writes all it gets into the journal, and none
//! waits for ever.

mod submit;
mod stream;
mod viewer;
mod open_streams;

pub use open_streams::crowd;
pub use stream::{ChatRefused, ChatStream, ChatStreamEnd};
pub use submit::{ChatSubmit, CursorPlacement};
pub use viewer::{ChatViewer, ViewerPosition};

pub use crate::sse::{Block, Garbled, Head, Parser, Said, begins};
