//! Where a client stands in a stream: the id of the last frame it has, sent back to go on.
//!
//! ```text
//! evt_00010000000006      all frames of event 6
//! evt_00010000000006-0    its first frame; it may have another, -1
//! ```

use std::fmt;
use std::str::FromStr;

use turnwire_event::{Position, Seq, Sub};

/// What the id of a frame looks like. That of an event alone is taken too.
pub const FRAME_ID_PATTERN: &str =
    "^evt_[0-9A-HJKMNP-TV-Z]{14}(\\.[0-9A-HJKMNP-TV-Z]{6})?(-[0-9])?$";

/// What a client has: everything up to a frame, or up to all frames of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The event.
    pub position: Position,
    /// Its last frame that the client has; none for all of them.
    pub frame: Option<u8>,
}

/// A text that is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a frame: it is `evt_…` or `evt_…-0`, as it came on an `id:` line")]
pub struct BadCursor;

impl Cursor {
    /// Whether the client has frame `k` of the event at `at`.
    pub fn covers(&self, at: Position, k: u8) -> bool {
        self.position > at || self.position == at && self.frame.is_none_or(|frame| k <= frame)
    }

    /// Where a replay of events must start so that every frame the client lacks is in it. An event
    /// that is persisted may have more frames than the client has, so it is told again; a
    /// transient one has one frame at most.
    pub fn since(&self) -> Position {
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

impl From<Position> for Cursor {
    fn from(position: Position) -> Self {
        Self {
            position,
            frame: None,
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frame {
            None => write!(f, "{}", self.position),
            Some(frame) => write!(f, "{}-{frame}", self.position),
        }
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let (position, frame) = match text.split_once('-') {
            None => (text, None),
            Some((position, digit)) => match digit.as_bytes() {
                [digit @ b'0'..=b'9'] => (position, Some(digit - b'0')),
                _ => return Err(BadCursor),
            },
        };
        let position = position.parse().map_err(|_| BadCursor)?;
        Ok(Self { position, frame })
    }
}

#[cfg(test)]
mod tests;
