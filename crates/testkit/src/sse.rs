//! Server-sent events as they come: the head of an answer and the blocks behind it, read strictly.

mod head;
mod parse;

pub use head::Head;
pub use parse::{Block, Garbled, Parser, Said, begins};
