//! Access of programs to the memory, the files and the environment of the server and its guards,
//! which the system grants to every process of the same user unless it is denied.

use std::io;

/// Denies other processes of the user access to the memory, the environment and the open files of
/// this process, through `/proc` and `ptrace`. The process writes no core dump from now on.
#[cfg(target_os = "linux")]
pub fn deny_inspection() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Nothing can be denied here.
#[cfg(not(target_os = "linux"))]
pub fn deny_inspection() -> io::Result<()> {
    Ok(())
}

/// Takes from this process, and from the program that it executes, the privileges of root to inspect
/// any process: to trace it, and to read its memory map and environment, which the system also
/// allows for measuring performance. Without the right to give them up, the process keeps them.
#[cfg(target_os = "linux")]
pub(super) fn drop_inspection_privileges() {
    use rustix::thread::{
        CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities,
    };
    let privileges = [
        CapabilitySet::SYS_PTRACE,
        CapabilitySet::PERFMON,
        CapabilitySet::SYS_ADMIN,
    ];
    for privilege in privileges {
        let _ = remove_capability_from_bounding_set(privilege);
    }
    if let Ok(mut sets) = capabilities(None) {
        for privilege in privileges {
            sets.inheritable.remove(privilege);
            sets.permitted.remove(privilege);
            sets.effective.remove(privilege);
        }
        let _ = set_capabilities(None, sets);
    }
}
