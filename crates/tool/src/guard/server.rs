//! The server as its guard sees it: the parent of the guard's process, until it is dead.

use std::io;

use rustix::process::{Pid, getppid};

/// Who a guard works for.
#[derive(Clone, Copy)]
pub(super) struct Server(Option<Pid>);

impl Server {
    /// From now on the server's death sends CONT to this process. That wakes a guard which its
    /// program has stopped, and does no harm when only a thread of the server ends, which tells
    /// the same. No program of the same user can look into this process or take what it has open.
    pub(super) fn bind() -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{
                DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
            };
            set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
            set_parent_process_death_signal(Some(Signal::CONT))?;
        }
        Ok(Self(getppid()))
    }

    /// Whether it is dead: then this process has another parent.
    pub(super) fn is_gone(self) -> bool {
        getppid() != self.0
    }
}
