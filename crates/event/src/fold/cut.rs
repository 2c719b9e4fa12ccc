//! Cuts: the end of each streamed delta of a message, so that a cursor inside the message can
//! be answered with exactly the remaining text. A few bytes per delta; the text is stored once.

use crate::clock::Timestamp;
use crate::position::{Epoch, Position, Seq, Sub};

/// The kind of delta that a [`DeltaCut`] ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutKind {
    Text,
    Thinking {
        /// True if text was sent earlier in the turn.
        after_text: bool,
        /// True if the delta carried the block's signature.
        signed: bool,
    },
    /// The start of a tool use.
    ToolStart,
    /// A fragment of a tool's input.
    ToolInput,
    /// The end of a tool's input.
    ToolEnd,
}

/// One delta of a message: its position, and its end within the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaCut {
    pub at: Position,
    pub time: Timestamp,
    pub kind: CutKind,
    /// The index of the block.
    pub block: u32,
    /// The length of the block after the delta, in bytes.
    pub end: u32,
}

impl DeltaCut {
    /// Appends the compact form. Position and time are stored relative to the message's `start`, so that
    /// every cut stays small.
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
        put(out, self.time.ms_since(start.1));
        put(out, u64::from(self.end));
    }

    /// Decodes the cuts of a message that started at `start`. Stops at the first invalid byte,
    /// so that a damaged row loses detail and never crashes the server.
    pub fn read_all(start: (Position, Timestamp), mut bytes: &[u8]) -> Vec<Self> {
        let mut cuts = Vec::new();
        while let Some(cut) = Self::read(start, &mut bytes) {
            cuts.push(cut);
        }
        cuts
    }

    fn read(start: (Position, Timestamp), bytes: &mut &[u8]) -> Option<Self> {
        let (&tag, tail) = bytes.split_first()?;
        *bytes = tail;
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

/// The cuts of a message in their compact form, which is also the stored one: a message of thousands of
/// deltas keeps some kilobytes of them in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct CutList {
    start: (Position, Timestamp),
    bytes: Vec<u8>,
    last: Option<DeltaCut>,
}

impl CutList {
    /// No cuts, of a message that started at `start`.
    pub fn new(start: (Position, Timestamp)) -> Self {
        Self {
            start,
            bytes: Vec::new(),
            last: None,
        }
    }

    /// The stored cuts of a message; see [`DeltaCut::read_all`].
    pub fn read(start: (Position, Timestamp), bytes: &[u8]) -> Self {
        let mut cuts = Self::new(start);
        cuts.extend(DeltaCut::read_all(start, bytes));
        cuts
    }

    /// Appends the cut of the newest delta.
    pub fn push(&mut self, cut: DeltaCut) {
        cut.write(self.start, &mut self.bytes);
        self.last = Some(cut);
    }

    /// The cuts, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = DeltaCut> + '_ {
        let mut bytes = self.bytes.as_slice();
        std::iter::from_fn(move || DeltaCut::read(self.start, &mut bytes))
    }

    /// The cut of the newest delta.
    pub fn last(&self) -> Option<&DeltaCut> {
        self.last.as_ref()
    }

    /// The compact form of all cuts.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Extend<DeltaCut> for CutList {
    fn extend<I: IntoIterator<Item = DeltaCut>>(&mut self, cuts: I) {
        cuts.into_iter().for_each(|cut| self.push(cut));
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
        let (&byte, tail) = bytes.split_first()?;
        *bytes = tail;
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
            let cut = DeltaCut {
                at: Position { epoch: Epoch(1), seq: Seq(5 + seq), sub: Sub(sub) },
                time: Timestamp::from_millis(1_000 + ms),
                kind: CutKind::Thinking { after_text: after, signed },
                block: 3,
                end,
            };
            let mut bytes = Vec::new();
            cut.write(start, &mut bytes);
            cut.write(start, &mut bytes);
            prop_assert_eq!(DeltaCut::read_all(start, &bytes), vec![cut, cut]);
            let list = CutList::read(start, &bytes);
            prop_assert_eq!(list.iter().collect::<Vec<_>>(), vec![cut, cut]);
            prop_assert_eq!((list.bytes(), list.last()), (&bytes[..], Some(&cut)));
        }

        #[test]
        fn damaged_cuts_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let start = (Position::persisted(Epoch(1), Seq(5)), Timestamp::from_millis(1_000));
            let _ = DeltaCut::read_all(start, &bytes);
        }
    }
}
