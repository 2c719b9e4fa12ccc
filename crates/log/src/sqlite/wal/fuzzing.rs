//! The readers of a store's files over bytes instead of files, for the fuzz targets.

use std::io;

use super::{WalScan, WalState};

pub use super::commit_mark::{is_mark, sealed_mark};

/// What a scan of a WAL found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalFrames {
    /// Frames up to the last commit that SQLite's recovery finds.
    pub recovered: u32,
    /// Frames up to the last commit that is proved.
    pub committed: u32,
    /// Frames that are lost if `known` frames were committed with the salts of the file.
    pub lost: u32,
}

/// Reads the bytes of a WAL file, and compares them with a commit of `known` frames.
pub fn scan_wal(bytes: &[u8], known: u32) -> io::Result<WalFrames> {
    let scan = WalScan::of(bytes)?;
    let known = scan.salts.map(|salts| WalState {
        salts,
        frames: known,
        backfilled: known / 2,
    });
    Ok(WalFrames {
        recovered: scan.recovered,
        committed: scan.committed,
        lost: scan.loss(known).map_or(0, |loss| loss.frames),
    })
}
