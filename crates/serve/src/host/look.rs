//! How a file looks: the same as long as nothing was written to it and nothing took its place.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What tells a file from what it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileFingerprint {
    bytes: u64,
    /// Which file it is: another may be put in its place.
    inode: u64,
    /// When it was written, in seconds and nanoseconds.
    written: (i64, i64),
    /// When its entry was changed: a copy may keep size and date.
    changed: (i64, i64),
}

impl FileFingerprint {
    /// How the file at `path`, or what it points to, looks; none if there is none.
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
