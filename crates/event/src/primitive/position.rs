//! The position of an event: `(epoch, seq, sub)`, and its text, whose string order is stream order.
//!
//! ```text
//! evt_0001 0000000007         the persisted event number 7 of epoch 1
//! evt_0001 0000000007 .000002 the second transient event after it
//! evt_0001 0000000008         the next persisted event
//! ```
//! (written without the spaces). `seq` is dense per session and never assigned twice; `sub` counts
//! transient events since the last `seq`. `seq` 0 is the cursor before the first event.

use std::fmt;
use std::str::FromStr;

use crate::id::{CROCKFORD, IdError, crockford_value, text_serde};

/// The generation of a session's history. It changes only when events that a client may have
/// seen can be lost, for example after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// The dense number of a persisted event in its session, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

/// The dense number of a transient event after its [`Seq`], from 1; 0 is the persisted event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sub(pub u32);

impl Epoch {
    /// The epoch of a new session.
    pub const FIRST: Self = Self(1);
    /// The highest epoch, which ids have room for.
    pub const MAX: u32 = (1 << 20) - 1;
}

impl Seq {
    /// The number that follows this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number before this one; 0 has none and stays.
    pub const fn prev(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
    const MAX: u64 = (1 << 50) - 1;
}

impl Sub {
    /// Reserved for the `message.complete` of a message that crash recovery ends, which must come
    /// after every transient event a client can have seen.
    pub const LAST: Self = Self((1 << 30) - 1);
    /// The number that follows this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A place in a session's total order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub epoch: Epoch,
    /// The number of the persisted event at or before this position.
    pub seq: Seq,
    /// The number of transient events after it; 0 for the persisted event itself.
    pub sub: Sub,
}

/// The text form of a position: what clients get as an event's id and send back as a cursor.
pub type EventId = Position;

impl Position {
    /// A position after every event.
    pub const LAST: Self = Self::persisted(Epoch(Epoch::MAX), Seq(Seq::MAX));

    /// The position of a persisted event.
    pub const fn persisted(epoch: Epoch, seq: Seq) -> Self {
        Self {
            epoch,
            seq,
            sub: Sub(0),
        }
    }

    /// The persisted position before this one: as a cursor it gives the event at this position.
    pub const fn before(self) -> Self {
        Self::persisted(self.epoch, self.seq.prev())
    }

    /// True if this is the position of a persisted event.
    pub const fn is_persisted(self) -> bool {
        self.sub.0 == 0
    }

    /// Appends the text form to `out` without allocating a string.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"evt_");
        digits(out, u64::from(self.epoch.0), 4);
        digits(out, self.seq.0, 10);
        if self.sub.0 > 0 {
            out.push(b'.');
            digits(out, u64::from(self.sub.0), 6);
        }
    }
}

fn digits(out: &mut Vec<u8>, value: u64, width: u32) {
    let places = (0..width).rev();
    out.extend(places.map(|at| CROCKFORD[((value >> (5 * at)) & 31) as usize]));
}

fn number(text: &str) -> Option<u64> {
    text.bytes().try_fold(0u64, |acc, byte| {
        Some((acc << 5) | u64::from(crockford_value(byte)?))
    })
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(25);
        self.write(&mut text);
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl FromStr for Position {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        parse(text).ok_or(IdError { what: "event id" })
    }
}

fn parse(text: &str) -> Option<Position> {
    let digits = text.strip_prefix("evt_").filter(|d| d.is_ascii())?;
    let (seq_part, sub) = match digits.split_once('.') {
        None => (digits, 0),
        Some((seq, sub)) => (seq, number(sub).filter(|&n| n > 0 && sub.len() == 6)?),
    };
    if seq_part.len() != 14 {
        return None;
    }
    let epoch = number(&seq_part[..4]).filter(|&e| e <= u64::from(Epoch::MAX))?;
    let seq = number(&seq_part[4..]).filter(|&s| s <= Seq::MAX)?;
    Some(Position {
        epoch: Epoch(epoch as u32),
        seq: Seq(seq),
        sub: Sub(sub as u32),
    })
}

text_serde!(Position, "EventId", {
    "type": "string",
    "pattern": "^evt_[0-9A-HJKMNP-TV-Z]{14}(\\.[0-9A-HJKMNP-TV-Z]{6})?$"
});

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn any_position()(epoch in 1..=Epoch::MAX, seq in 0..=Seq::MAX, sub in 0..=Sub::LAST.0) -> Position {
            Position { epoch: Epoch(epoch), seq: Seq(seq), sub: Sub(sub) }
        }
    }

    proptest! {
        // D-33
        #[test]
        fn string_order_is_stream_order(a in any_position(), b in any_position()) {
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
            prop_assert_eq!(a.to_string().parse::<Position>(), Ok(a));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Position>();
        }
    }

    #[test]
    fn widths_are_fixed() {
        let at = Position {
            epoch: Epoch(1),
            seq: Seq(33),
            sub: Sub(2),
        };
        assert_eq!(at.to_string(), "evt_00010000000011.000002");
        assert_eq!(
            Position::persisted(Epoch(1), Seq(0)).to_string(),
            "evt_00010000000000"
        );
        for bad in [
            "evt_",
            "evt_0001000000001",
            "evt_00010000000011.",
            "evt_00010000000011.000000",
            "evt_00010000000011.00002",
            "evt_0001000000001u",
            "x",
            "evt_000100000000é1",
        ] {
            assert!(bad.parse::<Position>().is_err(), "{bad}");
        }
    }
}
