//! What a guard tells the server: frames of a tag, a length and bytes.
//!
//! ```text
//! tag: 0 start · 1 output · 2 error output · 3 end    length: u32, little end first
//! ```
//! A start comes at most once and first, an end exactly once and last. Output is passed on in the
//! order in which the program wrote it.

use serde::{Deserialize, Serialize};
use turnwire_event::code::StopOutcome;

/// The tag and the length.
pub const HEAD_BYTES: usize = 5;
/// Of one frame; a guard cuts output into far smaller ones.
pub const FRAME_BYTES_MAX: usize = 64 * 1_024;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The program has a process.
    Start(Start),
    /// The program wrote this.
    Output(Vec<u8>),
    /// The program wrote this to its standard error.
    ErrorOutput(Vec<u8>),
    /// Nothing of it is left.
    End(End),
}

/// The program has a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Its id, which is the id of its group too.
    pub pid: u32,
}

/// Nothing of a program is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How the program itself ended.
    pub how: How,
    /// Whether it was told to end before it did, or what it left behind was before it was killed.
    pub asked: bool,
    /// Whether anything had to be killed.
    pub killed: bool,
    /// Whether it was killed because it had more processes than it may.
    pub crowd: bool,
    /// Whether what it wrote could not be read to its end.
    #[serde(default)]
    pub cut: bool,
    /// How many further processes had to be ended.
    pub left: u32,
    /// How long it all took.
    pub ms: u64,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was never there: no such program.
    MissingProgram,
    /// It was never there: no such folder.
    MissingFolder,
    /// It was never there: the system would not run it.
    Refused,
}

impl End {
    /// The end of what never began.
    pub fn unstarted(how: How) -> Self {
        Self {
            how,
            asked: false,
            killed: false,
            crowd: false,
            cut: false,
            left: 0,
            ms: 0,
        }
    }

    /// The same as a line of a receipt tells it.
    pub fn outcome(&self) -> StopOutcome {
        match (self.asked, self.killed) {
            (false, _) => StopOutcome::Finished,
            (true, false) => StopOutcome::Stopped,
            (true, true) => StopOutcome::Killed,
        }
    }
}

/// What a guard wrote is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of a guard cannot be read")]
pub struct Garbled;

impl Frame {
    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = |value: serde_json::Result<Vec<u8>>| value.unwrap_or_default();
        match self {
            Self::Start(start) => bytes(0, &json(serde_json::to_vec(start))),
            Self::Output(output) => bytes(1, output),
            Self::ErrorOutput(output) => bytes(2, output),
            Self::End(end) => bytes(3, &json(serde_json::to_vec(end))),
        }
    }

    /// The tag and the length of what follows.
    pub fn head(head: [u8; HEAD_BYTES]) -> Result<(u8, usize), Garbled> {
        let [tag, length @ ..] = head;
        let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| Garbled)?;
        if tag > 3 || length > FRAME_BYTES_MAX {
            return Err(Garbled);
        }
        Ok((tag, length))
    }

    /// The frame of a tag and bytes.
    pub fn read(tag: u8, bytes: Vec<u8>) -> Result<Self, Garbled> {
        match tag {
            0 => Ok(Self::Start(
                serde_json::from_slice(&bytes).map_err(|_| Garbled)?,
            )),
            1 => Ok(Self::Output(bytes)),
            2 => Ok(Self::ErrorOutput(bytes)),
            3 => Ok(Self::End(
                serde_json::from_slice(&bytes).map_err(|_| Garbled)?,
            )),
            _ => Err(Garbled),
        }
    }
}

fn bytes(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut whole = Vec::with_capacity(HEAD_BYTES + body.len());
    whole.push(tag);
    whole.extend_from_slice(&length.to_le_bytes());
    whole.extend_from_slice(body);
    whole
}

#[cfg(test)]
mod tests;
