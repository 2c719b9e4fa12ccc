//! Viewers of a turn over its chat stream: server-sent events on a raw socket, read by a parser
//! of its own that accounts for every byte. Each writes all it gets into the journal, and none
//! waits for ever.

mod question;
mod stream;
mod viewer;
mod crowd;

pub use crowd::crowd;
pub use question::{Carry, Question};
pub use stream::{End, Refused, Stream};
pub use viewer::{Place, Viewer};

pub use crate::sse::{Block, Garbled, Head, Parser, Said, begins};
