//! Cuts: where each streamed delta of a message ended, so that a cursor inside the message can
//! be answered with exactly the rest. A few bytes a delta; the text itself is kept once.

use crate::clock::Timestamp;
use crate::position::{Epoch, Position, Seq, Sub};

/// What a cut closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutKind {
    /// A piece of words.
    Text,
    /// A piece of reasoning.
    Thinking {
        /// Whether words had been sent before it in the turn.
        after_text: bool,
        /// Whether it carried the block's seal.
        signed: bool,
    },
    /// A tool use begins.
    ToolStart,
    /// A piece of a tool's input.
    ToolInput,
    /// A tool's input is whole.
    ToolEnd,
}

/// One delta of a message: where it stands, and where in its block it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The delta's position.
    pub at: Position,
    /// The delta's time.
    pub time: Timestamp,
    /// What it was.
    pub kind: CutKind,
    /// The block it belongs to.
    pub block: u32,
    /// Bytes of the block up to and with it.
    pub end: u32,
}

impl Cut {
    /// Appends the compact form; `epoch` and `start` are the message's, told apart so that every
    /// cut stays small.
    pub fn write(&self, start: (Position, Timestamp), out: &mut Vec<u8>) {
        out.push(match self.kind {
            CutKind::Text => 0,
            CutKind::Thinking { after_text, signed } => {
                1 | u8::from(after_text) << 4 | u8::from(signed) << 5
            }
            CutKind::ToolStart => 2,
            CutKind::ToolInput => 3,
            CutKind::ToolEnd => 4,
        });
        put(out, u64::from(self.block));
        put(out, self.at.seq.0.saturating_sub(start.0.seq.0));
        put(out, u64::from(self.at.sub.0));
        put(
            out,
            self.time
                .as_millis()
                .saturating_sub(start.1.as_millis())
                .max(0) as u64,
        );
        put(out, u64::from(self.end));
    }

    /// Reads every cut of a message that began at `start`; stops at the first byte that makes no
    /// sense, so that a damaged row costs detail and never the server.
    pub fn read_all(start: (Position, Timestamp), mut bytes: &[u8]) -> Vec<Self> {
        let mut cuts = Vec::new();
        while let Some(cut) = Self::read(start, &mut bytes) {
            cuts.push(cut);
        }
        cuts
    }

    fn read(start: (Position, Timestamp), bytes: &mut &[u8]) -> Option<Self> {
        let (&tag, rest) = bytes.split_first()?;
        *bytes = rest;
        let kind = match tag & 15 {
            0 => CutKind::Text,
            1 => CutKind::Thinking {
                after_text: tag & 16 != 0,
                signed: tag & 32 != 0,
            },
            2 => CutKind::ToolStart,
            3 => CutKind::ToolInput,
            4 => CutKind::ToolEnd,
            _ => return None,
        };
        let block = take(bytes)? as u32;
        let seq = Seq(start.0.seq.0.checked_add(take(bytes)?)?);
        let sub = Sub(take(bytes)? as u32);
        let time = Timestamp::from_millis(start.1.as_millis().checked_add_unsigned(take(bytes)?)?);
        let end = take(bytes)? as u32;
        let epoch: Epoch = start.0.epoch;
        Some(Self {
            at: Position { epoch, seq, sub },
            time,
            kind,
            block,
            end,
        })
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cuts_read_back(seq in 0u64..1_000_000, sub in 1u32..1_000_000, ms in 0i64..1_000_000, end in any::<u32>(), after: bool, signed: bool) {
            let start = (Position::persisted(Epoch(1), Seq(5)), Timestamp::from_millis(1_000));
            let cut = Cut {
                at: Position { epoch: Epoch(1), seq: Seq(5 + seq), sub: Sub(sub) },
                time: Timestamp::from_millis(1_000 + ms),
                kind: CutKind::Thinking { after_text: after, signed },
                block: 3,
                end,
            };
            let mut bytes = Vec::new();
            cut.write(start, &mut bytes);
            cut.write(start, &mut bytes);
            prop_assert_eq!(Cut::read_all(start, &bytes), vec![cut, cut]);
        }

        #[test]
        fn damaged_cuts_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let start = (Position::persisted(Epoch(1), Seq(5)), Timestamp::from_millis(1_000));
            let _ = Cut::read_all(start, &bytes);
        }
    }
}
