//! A program with open standard streams.

use tokio::net::UnixStream;
use tokio::process::ChildStdout;

use super::supervisor::GuardedProgram;

/// A program that [`pipe`](super::ProgramRunner::pipe) started. `input` and `output` may be moved away; hold
/// `program`, because dropping it ends the program.
#[derive(Debug)]
pub struct PipedProgram {
    /// Standard input of the program; nothing can be read from it.
    pub input: UnixStream,
    /// Standard output of the program. It ends when no process of the program is left.
    pub output: ChildStdout,
    /// The handle of the program.
    pub program: GuardedProgram,
}
