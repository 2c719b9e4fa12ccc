//! The server as the guard sees it: the parent process, until it dies.

use std::io;

use rustix::process::{Pid, getppid};

use super::inspection::deny_inspection;

/// The server that started the guard.
#[derive(Clone, Copy)]
pub(super) struct ParentServer(Option<Pid>);

impl ParentServer {
    /// Has the system send CONT to this process when the server dies. That wakes a guard which its
    /// program has stopped, and is harmless when only a thread of the server ends, which sends it
    /// too. Also denies other processes of the user access to the memory and files of this one.
    pub(super) fn bind() -> io::Result<Self> {
        deny_inspection()?;
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Signal, set_parent_process_death_signal};
            set_parent_process_death_signal(Some(Signal::CONT))?;
        }
        Ok(Self(getppid()))
    }

    /// Whether the server is dead: then this process has another parent.
    pub(super) fn is_dead(self) -> bool {
        getppid() != self.0
    }
}
