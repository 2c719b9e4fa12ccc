//! The fingerprint of a file: equal as long as the file was neither written nor replaced.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The metadata that changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileFingerprint {
    bytes: u64,
    /// Differs if another file has taken the place.
    inode: u64,
    /// When it was written, in seconds and nanoseconds.
    written: (i64, i64),
    /// When its entry was changed: a copy may keep size and date.
    changed: (i64, i64),
}

impl FileFingerprint {
    /// The fingerprint of the file at `path`, following links; `None` if there is no file.
    pub(super) fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().as_ref().map(Self::of)
    }

    pub(super) fn of(about: &Metadata) -> Self {
        Self {
            bytes: about.len(),
            inode: about.ino(),
            written: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}
