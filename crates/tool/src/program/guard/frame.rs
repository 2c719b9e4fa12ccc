//! The frames that a guard sends to the server: a tag, a length and a body.
//!
//! ```text
//! tag: 0 start · 1 output · 2 error output · 3 end    length: u32, little endian
//! ```
//! A start comes at most once and first, an end exactly once and last. Output keeps the order in
//! which the program wrote it.

use serde::{Deserialize, Serialize};
use turnwire_event::code::StopOutcome;

/// The tag and the length.
pub const HEAD_BYTES: usize = 5;
/// Of the body of a frame; a guard sends output in far smaller pieces.
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

/// The program has a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStarted {
    /// The process id, which is also the id of the process group.
    pub pid: u32,
}

/// How a program ended; no process of it is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    Refused,
}

impl ProgramEnded {
    /// The end of a program that was not started.
    pub fn unstarted(exit: ProgramExit) -> Self {
        Self {
            exit,
            requested: false,
            killed: false,
            too_many_processes: false,
            truncated: false,
            descendants: 0,
            duration_ms: 0,
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

/// Bytes of a guard that are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of a guard cannot be read")]
pub struct GuardFrameError;

impl GuardFrame {
    /// The bytes of the frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = |value: serde_json::Result<Vec<u8>>| value.unwrap_or_default();
        match self {
            Self::Start(start) => bytes(0, &json(serde_json::to_vec(start))),
            Self::Output(output) => bytes(1, output),
            Self::ErrorOutput(output) => bytes(2, output),
            Self::End(end) => bytes(3, &json(serde_json::to_vec(end))),
        }
    }

    /// Reads the tag and the length of the body.
    pub fn head(head: [u8; HEAD_BYTES]) -> Result<(u8, usize), GuardFrameError> {
        let [tag, length @ ..] = head;
        let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| GuardFrameError)?;
        if tag > 3 || length > FRAME_BYTES_MAX {
            return Err(GuardFrameError);
        }
        Ok((tag, length))
    }

    /// Reads the frame of a tag and a body.
    pub fn read(tag: u8, body: Vec<u8>) -> Result<Self, GuardFrameError> {
        let json_error = |_| GuardFrameError;
        match tag {
            0 => Ok(Self::Start(
                serde_json::from_slice(&body).map_err(json_error)?,
            )),
            1 => Ok(Self::Output(body)),
            2 => Ok(Self::ErrorOutput(body)),
            3 => Ok(Self::End(
                serde_json::from_slice(&body).map_err(json_error)?,
            )),
            _ => Err(GuardFrameError),
        }
    }
}

fn bytes(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(HEAD_BYTES + body.len());
    frame.push(tag);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(body);
    frame
}

#[cfg(test)]
mod tests;
