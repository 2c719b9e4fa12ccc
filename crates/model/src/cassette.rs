//! Cassettes: what a provider streamed, with its timing and without secrets, in a text file that
//! plays again with no key and no network.
//!
//! ```text
//! Transport ◀─ Recorder ─▶ Deck ─▶ file (JSON lines) ─▶ Tape, a Transport again ─▶ Player
//! ```
//! A file is a header and then calls, each whole: its `call` line, a line for each chunk as it came
//! from the socket, and its `end`.
//!
//! ```json
//! {"type":"cassette","version":1,"salt":"…"}
//! {"type":"call","provider":"local","dialect":"openai_chat","model":"m","agent":"shop","call":1,
//!  "words_sha256":"…","body_sha256":"…","status":200,"ms":40,"events":true}
//! {"type":"chunk","ms":41,"text":"data: {…}\n\n"}
//! {"type":"chunk","ms":57,"base64":"4pw="}
//! {"type":"end","ms":58,"how":"end"}
//! ```
//! Of the request there are digests alone, mixed with the file's own salt: what people say, headers
//! and keys are never written. Of an answer that refuses a key nothing but its head is.

mod salt;
mod call;
mod line;
mod read;
mod deck;
mod recorder;
mod tape;
mod player;

pub use call::{Call, Chunk, Ending, Head};
pub use deck::{Deck, DeckError};
pub use player::{CASSETTE, DialectOf, Player};
pub use read::{CassetteError, read};
pub use recorder::Recorder;
pub use salt::Salt;
pub use tape::Tape;

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;
