//! A file that holds room back: when the disk is full it is given up, so that running turns can
//! still write their endings; it is made again when there is room.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// The reserve beside a store.
#[derive(Debug)]
pub struct Reserve {
    path: PathBuf,
    bytes: u64,
}

impl Reserve {
    /// A reserve of `bytes` at `path`; nothing is written yet.
    pub fn new(path: PathBuf, bytes: u64) -> Self {
        Self { path, bytes }
    }

    /// Takes the room, if it is not held already. Real zeros are written: a sparse file would
    /// hold nothing back.
    pub fn hold(&self) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|m| m.len() == self.bytes) {
            return Ok(());
        }
        let filled = self.fill();
        if filled.is_err() {
            // Half a reserve would only make the shortage worse.
            let _ = fs::remove_file(&self.path);
        }
        filled
    }

    fn fill(&self) -> io::Result<()> {
        let mut file = File::create(&self.path)?;
        let zeros = vec![0u8; 1 << 16];
        let mut left = self.bytes;
        while left > 0 {
            let step = left.min(zeros.len() as u64);
            file.write_all(&zeros[..step as usize])?;
            left -= step;
        }
        file.sync_all()
    }

    /// Gives the room up.
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
    fn holds_real_room_and_gives_it_up() {
        let dir = tempfile::tempdir().expect("a folder");
        let reserve = Reserve::new(dir.path().join("reserve"), 200_000);
        reserve.hold().expect("room");
        let meta = fs::metadata(dir.path().join("reserve")).expect("the file");
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!(meta.len(), 200_000);
        assert!(meta.blocks() * 512 >= 200_000, "not sparse");
        reserve.release();
        reserve.release();
        assert!(!dir.path().join("reserve").exists());
    }
}
