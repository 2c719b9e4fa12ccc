//! The position of a client in a stream: the id of its last frame, sent back to resume.
//!
//! ```text
//! evt_00010000000006      all frames of event 6
//! evt_00010000000006-0    its first frame; it may have another, -1
//! ```

use std::fmt;
use std::str::FromStr;

use turnwire_event::{Position, Seq, Sub};

/// The pattern of a frame id. The id of an event without a frame index is accepted too.
pub const FRAME_ID_PATTERN: &str =
    "^evt_[0-9A-HJKMNP-TV-Z]{14}(\\.[0-9A-HJKMNP-TV-Z]{6})?(-[0-9])?$";

/// The frames that a client has: all up to one frame, or up to all frames of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameCursor {
    /// The event of the last frame.
    pub position: Position,
    /// The index of the last frame within the event; `None` for all frames of the event.
    pub frame: Option<u8>,
}

/// A text that is not a [`FrameCursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a frame: it is `evt_…` or `evt_…-0`, as it came on an `id:` line")]
pub struct InvalidCursor;

impl FrameCursor {
    /// True if the client has the frame with this index of the event at `at`.
    pub fn covers(&self, at: Position, index: u8) -> bool {
        self.position > at || self.position == at && self.frame.is_none_or(|frame| index <= frame)
    }

    /// The position after which a replay must start to include every frame that the client lacks. A
    /// persisted event may have more frames than the client has, so it is replayed again; a transient
    /// event has at most one frame.
    pub fn replay_start(&self) -> Position {
        let at = self.position;
        if self.frame.is_none() || !at.is_persisted() || at.seq == Seq(0) {
            return at;
        }
        Position {
            epoch: at.epoch,
            seq: Seq(at.seq.0 - 1),
            sub: Sub::LAST,
        }
    }
}

impl From<Position> for FrameCursor {
    fn from(position: Position) -> Self {
        Self {
            position,
            frame: None,
        }
    }
}

impl fmt::Display for FrameCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frame {
            None => write!(f, "{}", self.position),
            Some(frame) => write!(f, "{}-{frame}", self.position),
        }
    }
}

impl FromStr for FrameCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (position, frame) = match text.split_once('-') {
            None => (text, None),
            Some((position, digit)) => match digit.as_bytes() {
                [digit @ b'0'..=b'9'] => (position, Some(digit - b'0')),
                _ => return Err(InvalidCursor),
            },
        };
        let position = position.parse().map_err(|_| InvalidCursor)?;
        Ok(Self { position, frame })
    }
}

#[cfg(test)]
mod tests;
