//! The events that the waiting threads of a guard send to the thread of the
//! [`ProgramWatch`](super::watch::ProgramWatch).

use rustix::process::{Pid, WaitStatus};

/// What a guard waits for.
#[derive(Debug)]
pub(super) enum GuardEvent {
    /// The server wants the program to end.
    EndRequested,
    /// The server has closed the input of a piped program, or has exited.
    InputClosed,
    /// A process was reaped.
    Reaped(Pid, WaitStatus),
    /// No child is left, so no process of the program is.
    NoChildren,
    /// One of the two outputs of the program has ended.
    OutputEnded,
}
