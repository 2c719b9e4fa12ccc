//! The order to a guard: one line of JSON, the first on its standard input.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A program to run. It has no `Debug`, because its environment and its input may contain secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardOrder {
    /// How the standard streams are used.
    pub mode: GuardMode,
    /// The program, by name or path.
    pub program: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The whole environment of the program.
    pub env: BTreeMap<String, String>,
    /// The working directory of the program.
    pub dir: PathBuf,
    pub limits: ProgramLimits,
    /// The time between TERM and KILL.
    pub grace_ms: u64,
    /// The standard input of the program in [`GuardMode::Call`]; empty if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

/// How the standard streams of the guard are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardMode {
    /// One call: the output of the program is sent in frames on standard output. The end of
    /// standard input, or one more byte there, ends the program.
    Call,
    /// The standard streams are those of the program, and frames are sent on standard error. The
    /// end of standard input is forwarded; a program that does not exit then is ended.
    Pipe,
}

/// The resource limits of a program; `None` sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramLimits {
    /// Seconds of processor time of each process.
    pub cpu_s: Option<u64>,
    /// Bytes of address space of each process.
    pub memory_bytes: Option<u64>,
    /// Bytes of each file that is written.
    pub file_bytes: Option<u64>,
    /// Open files of each process.
    pub files: Option<u64>,
    /// Concurrent processes. The guard counts them a few times a second and kills all if there are
    /// more.
    pub processes: Option<u64>,
}
