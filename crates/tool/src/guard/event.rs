//! What happens around a program, told to the thread that watches it by those that wait.

use rustix::process::{Pid, WaitStatus};

/// What a watch waits for.
#[derive(Debug)]
pub(super) enum Event {
    /// The program shall end.
    Asked,
    /// The server has closed the input of a talk, or is dead.
    Closed,
    /// A process is reaped.
    Gone(Pid, WaitStatus),
    /// No child is left, so nothing is.
    Empty,
    /// One of the program's two outputs is at its end.
    Drained,
}
