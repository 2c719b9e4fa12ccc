//! What a guard is told to run: one line of JSON, the first on its standard input.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One program to run. Its environment and its input may hold secrets, so it is not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// What the standard streams are for.
    pub mode: Mode,
    /// The program, by name or path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// The folder it works in.
    pub dir: PathBuf,
    /// What it may use.
    pub limits: Limits,
    /// How long it has between TERM and KILL.
    pub grace_ms: u64,
    /// What is written to its standard input, in a call; nothing at all if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

impl Order {
    /// How long a program has between TERM and KILL.
    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }
}

/// What the standard streams are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One call: what the program writes comes in frames on the guard's standard output, and the
    /// end of the guard's standard input, or one more byte there, ends it.
    Call,
    /// A talk: the standard streams are the program's, and frames come on the guard's standard
    /// error. The end of the input is passed on, and the program ended if that does not do it.
    Pipe,
}

/// What a program may use; no limit of its own where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds of processor time, for each of its processes.
    pub cpu_s: Option<u64>,
    /// Bytes of address space, for each of its processes.
    pub memory_bytes: Option<u64>,
    /// Bytes of any one file it writes.
    pub file_bytes: Option<u64>,
    /// Files that each of its processes has open.
    pub files: Option<u64>,
    /// Processes at once. The guard looks a few times a second and kills a crowd.
    pub processes: Option<u64>,
}
