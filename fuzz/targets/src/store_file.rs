//! The files beside the database that a start reads: the WAL and the commit mark.

use turnwire_log::sqlite::fuzzing::{is_mark, scan_wal, sealed_mark};

use crate::chunk::planned;

/// A WAL file; the first byte is the number of frames that are known to be committed.
pub(crate) fn run_wal(input: &[u8]) {
    let (known, file) = planned(input);
    let found = scan_wal(file, u32::from(known)).expect("bytes can be read");
    assert!(found.recovered <= found.committed, "{found:?}");
    assert!(found.committed as usize <= file.len() / 512, "{found:?}");
}

/// A commit mark, and one whose hash is right for any other bytes.
pub(crate) fn run_mark(input: &[u8]) {
    is_mark(input);
    is_mark(&sealed_mark(input));
}
