//! The machine: cores and pinning, open files, and what the kernel says a process has used.
//!
//! Pinning works by inheritance: a thread takes a core, starts a child, and gives the core back.
//! Every figure comes from `/proc`, so a process is measured from outside, whatever it runs.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How many cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The processor's name, as the kernel tells it.
pub fn processor() -> String {
    fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| "unknown processor".to_owned())
}

/// Memory of the machine, in GiB.
pub fn memory_gib() -> u64 {
    fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| kilobytes(&text, "MemTotal:"))
        .map_or(0, |kb| kb.div_ceil(1 << 20))
}

/// The release of the kernel.
pub fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Holds this thread on one core; dropping it gives back what it had. Children started meanwhile
/// stay on the core.
#[derive(Debug)]
pub struct CorePin {
    before: Option<CpuSet>,
}

/// Which of the cores a thread may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreChoice {
    /// The first, for servers.
    First,
    /// The last, for load clients.
    Last,
}

impl CorePin {
    /// Takes a core, or nothing where there is only one.
    pub fn on(core: CoreChoice) -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        let mut allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| before.is_set(cpu));
        let (first, last) = (allowed.next(), allowed.next_back());
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(Self { before: None });
        };
        let mut one = CpuSet::new();
        one.set(match core {
            CoreChoice::First => first,
            CoreChoice::Last => last,
        });
        sched_setaffinity(None, &one)?;
        Ok(Self {
            before: Some(before),
        })
    }
}

impl Drop for CorePin {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // What was allowed before is allowed again; nothing depends on it if not.
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// Raises the limit of open files as far as the machine allows, and says where it is now.
pub fn raise_open_files() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// Processor time that a process has used, user and system together.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = ticks::<2>(&text).ok_or_else(|| io::Error::other("unreadable /proc/PID/stat"))?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// Processor time of the whole machine and of this process with all its children, in ticks, since
/// each began. Interrupts count as used: what they cost our sockets is in our own time as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuUsage {
    all: u64,
    idle: u64,
    own: u64,
}

impl CpuUsage {
    /// What was used up to now; children count once they have ended.
    pub fn now() -> io::Result<Self> {
        let unreadable = || io::Error::other("unreadable /proc/stat");
        let machine = fs::read_to_string("/proc/stat")?;
        let (all, idle) = machine_ticks(&machine).ok_or_else(unreadable)?;
        let own = fs::read_to_string("/proc/self/stat")?;
        let own = ticks::<4>(&own).ok_or_else(unreadable)?;
        Ok(Self { all, idle, own })
    }

    /// The share of the machine that others used since `before`.
    pub fn others_since(self, before: Self) -> f64 {
        let all = (self.all - before.all).max(1);
        let others = all.saturating_sub((self.idle - before.idle) + (self.own - before.own));
        others as f64 / all as f64
    }
}

/// All ticks, and the unused ones (idle, waiting for the disk).
fn machine_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .take(8)
        .collect();
    let idle = ticks.get(3..5)?.iter().sum();
    Some((ticks.iter().sum(), idle))
}

/// Resident memory of a process, in KiB.
pub fn resident_kb(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    kilobytes(&text, "VmRSS:").ok_or_else(|| io::Error::other("no VmRSS in /proc/PID/status"))
}

/// The most memory of a process that was ever resident, in KiB.
pub fn peak_kb(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    kilobytes(&text, "VmHWM:").ok_or_else(|| io::Error::other("no VmHWM in /proc/PID/status"))
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The sum of `COUNT` fields from number 14 on: user, system, and both again of children that have
/// ended. Counted behind the command's name, which may hold blanks and brackets.
fn ticks<const COUNT: usize>(stat: &str) -> Option<u64> {
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let numbers: Vec<u64> = fields
        .take(COUNT)
        .map_while(|field| field.parse().ok())
        .collect();
    (numbers.len() == COUNT).then(|| numbers.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_ticks_parse_behind_a_bracketed_name() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 70 30 4 5 0 0";
        assert_eq!(ticks::<2>(stat), Some(100));
        assert_eq!(ticks::<4>(stat), Some(109));
        assert_eq!(ticks::<2>("12 no name"), None);
    }

    #[test]
    fn other_cpu_time_excludes_idle_and_own() {
        let stat = "cpu  10 1 9 70 5 1 2 2 0 0\ncpu0 1 1 1 1\n";
        assert_eq!(machine_ticks(stat), Some((100, 75)));
        let before = CpuUsage {
            all: 100,
            idle: 78,
            own: 5,
        };
        let after = CpuUsage {
            all: 300,
            idle: 178,
            own: 55,
        };
        assert_eq!(after.others_since(before), 0.25);
    }

    #[test]
    fn own_process_is_measured() {
        let pid = std::process::id();
        let resident = resident_kb(pid).expect("own status");
        assert!(resident > 100);
        assert!(peak_kb(pid).expect("own status") >= resident);
        assert!(cpu_time(pid).is_ok());
    }
}
