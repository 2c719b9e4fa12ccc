//! Cassettes: recorded provider responses with their timing and without secrets, in a text file
//! that can be played back with no key and no network.
//!
//! ```text
//! Transport ◀─ Recorder ─▶ Deck ─▶ file (JSON lines) ─▶ Tape, a Transport again ─▶ Player
//! ```
//! A file is a header followed by complete calls: a `call` line, a line per chunk as it was read
//! from the socket, and an `end` line.
//!
//! ```json
//! {"type":"cassette","version":1,"salt":"…"}
//! {"type":"call","provider":"local","dialect":"openai_chat","model":"m","agent":"shop","call":1,
//!  "words_sha256":"…","body_sha256":"…","status":200,"ms":40,"events":true}
//! {"type":"chunk","ms":41,"text":"data: {…}\n\n"}
//! {"type":"chunk","ms":57,"base64":"4pw="}
//! {"type":"end","ms":58,"how":"end"}
//! ```
//! A request is stored only as digests mixed with the file's salt: user text, headers and keys are
//! never written. For a response that rejects the key only the head is stored.

mod salt;
mod recorded_call;
mod line;
mod parse;
mod writer;
mod recorder;
mod playback;
mod provider;

pub use parse::{CassetteError, parse};
pub use playback::CassettePlayback;
pub use provider::{CASSETTE_PROVIDER, CassetteProvider, DialectLookup};
pub use recorded_call::{CallEnding, RecordedCall, RecordedChunk, ResponseHead};
pub use recorder::RecordingTransport;
pub use salt::CassetteSalt;
pub use writer::{CassetteWriter, CassetteWriterError};

/// Version of the format that is written; no other version can be read.
pub const VERSION: u32 = 1;
