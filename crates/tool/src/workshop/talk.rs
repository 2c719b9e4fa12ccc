//! A program to talk with.

use tokio::net::UnixStream;
use tokio::process::ChildStdout;

use super::keeper::Guarded;

/// A program whose standard streams are open to talk with it. `input` and `output` are plain
/// streams of bytes and can be given away; `program` is to be kept, for dropping it ends all.
#[derive(Debug)]
pub struct Piped {
    /// What is written here the program reads; there is nothing to read in it.
    pub input: UnixStream,
    /// What the program writes. Its end comes when nothing of the program is left.
    pub output: ChildStdout,
    /// The program itself.
    pub program: Guarded,
}
