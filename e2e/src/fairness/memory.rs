//! Memory of a server as the kernel counts it, and a guard that ends a server before it takes the
//! machine's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Resident memory in MiB at which [`MemoryGuard`] ends a server.
pub const HARD_MIB: u64 = 3_072;
const POLL: Duration = Duration::from_millis(20);

/// The value of a key such as `VmHWM:` in `/proc/PID/status`, in MiB.
fn status_mib(pid: u32, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1_024)
}

/// The most memory of a process that was ever resident, in MiB; `None` if it has ended.
pub fn peak_mib(pid: u32) -> Option<u64> {
    status_mib(pid, "VmHWM:")
}

/// Watches the memory of a server until it is dropped or [`MemoryGuard::stop`] is called.
#[derive(Debug)]
pub struct MemoryGuard {
    halt: Arc<AtomicBool>,
    /// Returns true if it ended the server.
    thread: Option<JoinHandle<bool>>,
}

impl MemoryGuard {
    /// Starts a thread that polls the memory of `pid`, a child of this process.
    pub fn watch(pid: u32) -> Self {
        let halt = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&halt);
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::Acquire) {
                if status_mib(pid, "VmRSS:").is_some_and(|mib| mib > HARD_MIB) {
                    let child = i32::try_from(pid).ok().and_then(Pid::from_raw);
                    // The child is not reaped while it is watched, so the id is still its own.
                    return child.is_some_and(|child| kill_process(child, Signal::KILL).is_ok());
                }
                std::thread::sleep(POLL);
            }
            false
        });
        Self {
            halt,
            thread: Some(thread),
        }
    }

    /// Stops watching; true if the server was ended.
    pub fn stop(mut self) -> bool {
        self.halt.store(true, Ordering::Release);
        let thread = self.thread.take();
        thread.is_some_and(|thread| thread.join().unwrap_or(false))
    }
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        self.halt.store(true, Ordering::Release);
    }
}
