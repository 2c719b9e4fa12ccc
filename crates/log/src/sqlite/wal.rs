//! The WAL file as SQLite's recovery reads it, and as it ends if nothing is damaged.
//!
//! ```text
//!   header   frame 1 … frame 13 │ frame 14  frame 15 … frame 20 │ frame 21 …
//!   salts    each with the salts│ damaged                commit │ a later transaction
//!            and a checksum over├── recovery ignores everything from here on ──────▶
//!            all before it      │
//! ```
//!
//! SQLite takes the first frame that does not match for the end of the WAL, because a power failure
//! may tear the transaction that was being written. A transaction is written after the one before
//! is on disk, so frames of a later transaction prove that the torn one was committed: the file is
//! damaged. A [`WalState`] from another file proves it for the last transaction too. The layout is
//! SQLite's documented file format.

pub(crate) mod gauge;
pub(crate) mod commit_tail;
pub(crate) mod commit_mark;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::private;

/// Bytes of the header of a WAL file.
const HEADER_BYTES: usize = 32;
/// Bytes of the header of a frame; a page follows.
const FRAME_HEADER_BYTES: usize = 24;
/// The first word of a header, without the bit that says which order of bytes checksums use.
const MAGIC: u32 = 0x377f_0682;
/// The version of the formats of the WAL file and of its index.
const FORMAT_VERSION: u32 = 3_007_000;
/// Bytes of the head of the WAL index: two copies of the header, and the checkpoint's counters.
const INDEX_HEAD_BYTES: usize = 136;

/// The salts of a WAL file: each restart of the WAL has its own, and the first counts up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalSalts(pub(crate) [u8; 8]);

impl WalSalts {
    /// True if these are the salts of a later restart of the WAL than `other`.
    fn is_after(self, other: Self) -> bool {
        let count = |salts: Self| word(&salts.0, 0);
        (count(self).wrapping_sub(count(other)) as i32) > 0
    }
}

/// A commit in the WAL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalState {
    pub(crate) salts: WalSalts,
    /// Frames up to and including the commit.
    pub(crate) frames: u32,
    /// Frames that a checkpoint has copied into the database file.
    pub(crate) backfilled: u32,
}

impl WalState {
    /// Reads the index of the WAL, which SQLite updates after every commit. `None` if it is not a
    /// valid one.
    pub(crate) fn read_index(index: &File) -> Option<Self> {
        let mut head = [0; INDEX_HEAD_BYTES];
        index.read_exact_at(&mut head, 0).ok()?;
        let (first, second) = (head.get(..48)?, head.get(48..96)?);
        let native = |at: usize| word_with(&head, at, u32::from_ne_bytes);
        let is_native_big = cfg!(target_endian = "big");
        let checksum = Checksum::default().over(first.get(..40)?, is_native_big);
        let is_valid = first == second
            && native(0) == FORMAT_VERSION
            && first.get(12) == Some(&1)
            && checksum == Checksum(native(40), native(44));
        let salts = WalSalts(first.get(32..40)?.try_into().ok()?);
        let state = Self {
            salts,
            frames: native(16),
            backfilled: native(96),
        };
        // An index that was made for an empty WAL has no salts and says nothing.
        (is_valid && salts != WalSalts::default()).then_some(state)
    }

    /// The later of two states; of the same salts, the larger numbers of both.
    pub(crate) fn latest(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) if a.salts == b.salts => Some(Self {
                salts: a.salts,
                frames: a.frames.max(b.frames),
                backfilled: a.backfilled.max(b.backfilled),
            }),
            (Some(a), Some(b)) if b.salts.is_after(a.salts) => Some(b),
            (a, b) => a.or(b),
        }
    }
}

/// A WAL file, read to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalScan {
    /// `None` if the file is missing, or its header is not valid: SQLite ignores the file.
    salts: Option<WalSalts>,
    /// Frames up to the last commit that SQLite's recovery finds.
    recovered: u32,
    /// Frames up to the last commit that is proved by the frames after it; not less than
    /// `recovered`.
    committed: u32,
}

/// Committed frames that SQLite's recovery does not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalLoss {
    /// Frames that were committed and are lost, at least.
    pub(crate) frames: u32,
    /// True if the database file is newer than the rest of the WAL, which must not be applied to it.
    pub(crate) discard: bool,
}

impl WalScan {
    /// Reads the WAL file at `path`, piece by piece.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        match private::open_to_read(path) {
            Ok(file) => Self::of(BufReader::with_capacity(1 << 18, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn of(mut file: impl Read) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        if !read_whole(&mut file, &mut header)? {
            return Ok(Self::default());
        }
        let is_big = word(&header, 0) & 1 == 1;
        let mut chain = Checksum::default().over(&header[..24], is_big);
        let page_bytes = word(&header, 8) as usize;
        let is_valid = word(&header, 0) & !1 == MAGIC
            && word(&header, 4) == FORMAT_VERSION
            && page_bytes.is_power_of_two()
            && (512..=65_536).contains(&page_bytes)
            && chain == Checksum(word(&header, 24), word(&header, 28));
        let salts = header[16..24].try_into().map(WalSalts).unwrap_or_default();
        if !is_valid {
            return Ok(Self::default());
        }
        let mut scan = Self {
            salts: Some(salts),
            ..Self::default()
        };
        let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
        let mut expected = chain;
        let mut is_intact = true;
        let mut follows_commit = false;
        let mut number = 0;
        while read_whole(&mut file, &mut frame)? {
            number += 1;
            let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
            let stored = Checksum(word(head, 16), word(head, 20));
            // Continues the frame before, also one that is damaged: its stored checksum, or the one
            // that it should have. The checksum does not cover the salts.
            let has_salts = head[8..16] == salts.0;
            let after = |chain: Checksum| chain.over(&head[..8], is_big).over(page, is_big);
            let computed = after(chain);
            let is_chained = computed == stored || expected != chain && after(expected) == stored;
            let continues = has_salts && is_chained && word(head, 0) != 0;
            let is_commit = (has_salts || is_chained) && word(head, 4) != 0;
            let was_intact = is_intact;
            is_intact &= continues;
            if is_intact && is_commit {
                scan.recovered = number;
            }
            if !was_intact && continues {
                let is_proved = scan.committed > scan.recovered;
                if follows_commit {
                    scan.committed = number - 1;
                }
                if is_commit && (is_proved || follows_commit) {
                    scan.committed = number;
                }
            }
            follows_commit = is_commit;
            expected = computed;
            chain = stored;
        }
        scan.committed = scan.committed.max(scan.recovered);
        Ok(scan)
    }

    /// Compares the file with the last commit that is `known` from elsewhere.
    pub(crate) fn loss(&self, known: Option<WalState>) -> Option<WalLoss> {
        let behind = self.committed - self.recovered;
        let (missing, discard) = match (known, self.salts) {
            (None, _) => (0, false),
            (Some(known), Some(salts)) if salts == known.salts => (
                known.frames.saturating_sub(self.recovered),
                self.recovered < known.backfilled,
            ),
            // The WAL was restarted, which SQLite does when a checkpoint has copied every frame.
            (Some(known), Some(salts)) if salts.is_after(known.salts) => (0, false),
            // Missing, unreadable, or the file of an earlier time.
            (Some(known), found) => (
                known.frames.saturating_sub(known.backfilled),
                found.is_some(),
            ),
        };
        let frames = missing.max(behind);
        (frames > 0).then_some(WalLoss { frames, discard })
    }
}

/// Fills `buffer`; false at the end of the file.
fn read_whole(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The checksum of SQLite's WAL: two sums that depend on the order of the words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Checksum(u32, u32);

impl Checksum {
    /// The sums continued over `bytes`, whose length is a multiple of 8.
    fn over(self, bytes: &[u8], is_big: bool) -> Self {
        let read = match is_big {
            true => u32::from_be_bytes,
            false => u32::from_le_bytes,
        };
        let Self(mut a, mut b) = self;
        for pair in bytes.chunks_exact(8) {
            a = a.wrapping_add(word_with(pair, 0, read)).wrapping_add(b);
            b = b.wrapping_add(word_with(pair, 4, read)).wrapping_add(a);
        }
        Self(a, b)
    }
}

/// A big-endian word, as the headers of the WAL have them.
fn word(bytes: &[u8], at: usize) -> u32 {
    word_with(bytes, at, u32::from_be_bytes)
}

fn word_with(bytes: &[u8], at: usize, read: impl Fn([u8; 4]) -> u32) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map_or(0, read)
}

#[cfg(test)]
mod tests;
