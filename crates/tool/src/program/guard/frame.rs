//! The frames that a guard sends to the server: a tag, a length and a body.
//!
//! ```text
//! tag: 0 start · 1 output · 2 error output · 3 end    length: u32, little endian
//! ```
//! A start comes at most once and first, an end exactly once and last. Output keeps the order in
//! which the program wrote it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use turnwire_event::code::StopOutcome;

/// The tag of a frame.
pub const TAG_BYTES: usize = 1;
/// The tag and the length of a frame.
pub const HEAD_BYTES: usize = TAG_BYTES + 4;
/// The limit of the body of a frame; a guard sends output in far smaller pieces.
pub const FRAME_BYTES_MAX: usize = 64 * 1_024;

/// One frame of a guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardFrame {
    /// The program has a process.
    Start(ProgramStarted),
    /// Standard output of the program.
    Output(Vec<u8>),
    /// Standard error of the program.
    ErrorOutput(Vec<u8>),
    /// No process of the program is left.
    End(ProgramEnded),
}

/// The body of [`GuardFrame::Start`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStarted {
    /// The process id, which is also the id of the process group.
    pub pid: u32,
}

/// The body of [`GuardFrame::End`]: how a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEnded {
    /// How the program itself ended.
    #[serde(rename = "how")]
    pub exit: ProgramExit,
    /// The end was requested before the program exited, or before its descendants were killed.
    #[serde(rename = "asked")]
    pub requested: bool,
    /// A process had to be killed.
    pub killed: bool,
    /// The program was killed because it had more processes than its limit.
    #[serde(rename = "crowd")]
    pub too_many_processes: bool,
    /// The output could not be read to its end.
    #[serde(default, rename = "cut")]
    pub truncated: bool,
    /// The number of descendants that had to be ended.
    #[serde(rename = "left")]
    pub descendants: u32,
    /// From the start to the end.
    #[serde(rename = "ms")]
    pub duration_ms: u64,
}

/// How a program exited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramExit {
    /// With this exit code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// It was not started: there is no such program.
    MissingProgram,
    /// It was not started: there is no such folder.
    MissingFolder,
    /// It was not started: the system refused to run it.
    #[default]
    Refused,
    /// Its guard died, and it was killed with it.
    GuardDied,
}

impl ProgramEnded {
    /// The end of a program that was not started.
    pub fn unstarted(exit: ProgramExit) -> Self {
        Self {
            exit,
            ..Self::default()
        }
    }

    /// The outcome in the receipt of a cancel.
    pub fn outcome(&self) -> StopOutcome {
        match (self.requested, self.killed) {
            (false, _) => StopOutcome::Finished,
            (true, false) => StopOutcome::Stopped,
            (true, true) => StopOutcome::Killed,
        }
    }
}

impl GuardFrame {
    /// The bytes of the frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = |value: serde_json::Result<Vec<u8>>| Cow::Owned(value.unwrap_or_default());
        let (tag, body) = match self {
            Self::Start(start) => (0, json(serde_json::to_vec(start))),
            Self::Output(output) => (1, Cow::Borrowed(&output[..])),
            Self::ErrorOutput(output) => (2, Cow::Borrowed(&output[..])),
            Self::End(end) => (3, json(serde_json::to_vec(end))),
        };
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        [&[tag][..], &length.to_le_bytes(), &body].concat()
    }

    /// Reads a frame from its bytes; `None` if they are not a frame.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (head, body) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        match head[0] {
            0 => serde_json::from_slice(body).ok().map(Self::Start),
            1 => Some(Self::Output(body.to_vec())),
            2 => Some(Self::ErrorOutput(body.to_vec())),
            3 => serde_json::from_slice(body).ok().map(Self::End),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
