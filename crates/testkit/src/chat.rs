//! Viewers of a turn over its chat stream: server-sent events on a raw socket, read by a parser
//! of its own that accounts for every byte. Each writes all it gets into the journal, and none
//! waits for ever.

mod parse;
mod question;
mod head;
mod stream;
mod viewer;
mod crowd;

pub use crowd::crowd;
pub use head::Head;
pub use parse::{Block, Garbled, Parser, Said, begins};
pub use question::{Carry, Question};
pub use stream::{End, Refused, Stream};
pub use viewer::{Place, Viewer};
