//! A file that reserves disk space. It is removed when the disk is full, so that running turns can
//! still write their terminals, and is created again when there is free space.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::private;

/// A reserve file in the folder of the database.
#[derive(Debug)]
pub struct DiskReserve {
    path: PathBuf,
    bytes: u64,
}

impl DiskReserve {
    /// A reserve of `bytes` at `path`; [`acquire`](Self::acquire) writes the file.
    pub fn new(path: PathBuf, bytes: u64) -> Self {
        Self { path, bytes }
    }

    /// Creates the file unless it is there. Writes real zeros: a sparse file would reserve nothing.
    pub fn acquire(&self) -> io::Result<()> {
        let found = fs::symlink_metadata(&self.path).ok();
        let is_file = found.as_ref().is_none_or(|found| found.is_file());
        if is_file && found.is_some_and(|found| found.len() == self.bytes) {
            return Ok(());
        }
        let filled = self.fill();
        if filled.is_err() && is_file {
            // A partial file would take space that others need.
            let _ = fs::remove_file(&self.path);
        }
        filled
    }

    fn fill(&self) -> io::Result<()> {
        let mut file = private::create_file(&self.path)?;
        let zeros = vec![0u8; 1 << 16];
        let mut remaining = self.bytes;
        while remaining > 0 {
            let step = remaining.min(zeros.len() as u64);
            file.write_all(&zeros[..step as usize])?;
            remaining -= step;
        }
        file.sync_all()
    }

    /// Removes the reserve file to free its space.
    pub fn release(&self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "the reserve file could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_takes_real_blocks_until_released() {
        let dir = tempfile::tempdir().expect("a folder");
        let reserve = DiskReserve::new(dir.path().join("reserve"), 200_000);
        reserve.acquire().expect("free space");
        let meta = fs::metadata(dir.path().join("reserve")).expect("the file");
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!(meta.len(), 200_000);
        assert!(meta.blocks() * 512 >= 200_000, "not sparse");
        reserve.release();
        reserve.release();
        assert!(!dir.path().join("reserve").exists());
    }
}
