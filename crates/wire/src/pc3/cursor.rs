//! The position of a client in a stream: the id of its last frame, sent back to resume.
//!
//! ```text
//! evt_00010000000006           all frames of event 6
//! evt_00010000000006-0-9K3T    its first frame; it may have another, -1
//! evt_00010000000006-0         the same, from a server before the tag
//! ```
//! `9K3T` is the [`SessionTag`]: positions of all sessions look alike, and a cursor of another
//! session would skip frames.

use std::fmt;
use std::str::FromStr;

use turnwire_event::{Event, Position, Seq, SessionId, Sub};

/// The pattern of a frame id. The id of an event without a frame index is accepted too.
pub const FRAME_ID_PATTERN: &str =
    "^evt_[0-9A-HJKMNP-TV-Z]{14}(\\.[0-9A-HJKMNP-TV-Z]{6})?(-[0-9](-[0-9A-HJKMNP-TV-Z]{4})?)?$";

/// The last characters of a session's id: tells the frames of a session from those of others, but for
/// one in a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionTag([u8; 4]);

impl SessionTag {
    /// The tag of a session.
    pub fn of(session: SessionId) -> Self {
        let text = session.0.text();
        let (_, last) = text.split_last_chunk().expect("an id of 26 characters");
        Self(*last)
    }
}

impl fmt::Display for SessionTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|c| write!(f, "{}", *c as char))
    }
}

impl FromStr for SessionTag {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let is_crockford = |c: &u8| matches!(c, b'0'..=b'9' | b'A'..=b'Z') && !b"ILOU".contains(c);
        match <[u8; 4]>::try_from(text.as_bytes()) {
            Ok(tag) if tag.iter().all(is_crockford) => Ok(Self(tag)),
            _ => Err(InvalidCursor),
        }
    }
}

/// The frames that a client has: all up to one frame, or up to all frames of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameCursor {
    /// The event of the last frame.
    pub position: Position,
    /// The index of the last frame within the event; `None` for all frames of the event.
    pub frame: Option<u8>,
    /// The session of the frame; `None` in the id of an event.
    pub tag: Option<SessionTag>,
}

/// A text that is not a [`FrameCursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a frame: it is `evt_…` or `evt_…-0-…`, as it came on an `id:` line")]
pub struct InvalidCursor;

impl FrameCursor {
    /// The id of a frame of an event.
    pub fn of_frame(event: &Event, frame: u8) -> Self {
        Self {
            position: event.id,
            frame: Some(frame),
            tag: Some(SessionTag::of(event.session_id)),
        }
    }

    /// False if the cursor is known to be of another session than `session`.
    pub fn may_be_of(&self, session: SessionId) -> bool {
        self.tag.is_none_or(|tag| tag == SessionTag::of(session))
    }

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
            tag: None,
        }
    }
}

impl fmt::Display for FrameCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.position)?;
        if let Some(frame) = self.frame {
            write!(f, "-{frame}")?;
        }
        match self.tag {
            Some(tag) => write!(f, "-{tag}"),
            None => Ok(()),
        }
    }
}

impl FromStr for FrameCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let mut parts = text.splitn(3, '-');
        let position = parts.next().unwrap_or_default();
        let position = position.parse().map_err(|_| InvalidCursor)?;
        let frame = parts.next().map(|digit| match digit.as_bytes() {
            [digit @ b'0'..=b'9'] => Ok(digit - b'0'),
            _ => Err(InvalidCursor),
        });
        Ok(Self {
            position,
            frame: frame.transpose()?,
            tag: parts.next().map(str::parse).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests;
