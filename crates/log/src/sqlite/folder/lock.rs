//! The locks of a folder: one process at a time opens its database for writing.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::error::OpenError;
use crate::private;

/// The name of the lock file.
pub(crate) const LOCK_FILE: &str = "lock";

/// Attempts to lock a folder, and the pause between two of them: [`is_locked`] of another process holds a
/// shared lock for a moment.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// The locks of this process, until they are dropped. The lock of the folder itself does not depend on a
/// name: it holds when the lock file is removed, and when the folder is moved.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _folder: File,
    _file: File,
}

impl FolderLock {
    pub(crate) fn acquire(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join(LOCK_FILE);
        let io_error = |path: &Path, error: &io::Error| OpenError::Io {
            path: path.display().to_string(),
            cause: error.to_string(),
        };
        let folder = File::open(dir).map_err(|error| io_error(dir, &error))?;
        match lock(&folder) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse(dir.display().to_string()));
            }
            // Some network file systems lock no folders.
            Err(TryLockError::Error(error)) => tracing::warn!(
                %error,
                "the data folder itself cannot be locked: only its lock file keeps a second server out"
            ),
        }
        let file = private::create_file(&path).map_err(|error| io_error(&path, &error))?;
        match lock(&file) {
            Ok(()) => Ok(Self {
                _folder: folder,
                _file: file,
            }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(dir.display().to_string())),
            Err(TryLockError::Error(error)) => Err(io_error(&path, &error)),
        }
    }
}

fn lock(file: &File) -> Result<(), TryLockError> {
    for _ in 1..ATTEMPTS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            locked => return locked,
        }
    }
    file.try_lock()
}

/// True if a process has locked the folder.
pub(crate) fn is_locked(dir: &Path) -> bool {
    let is_locked = |file: io::Result<File>| {
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    };
    is_locked(File::open(dir)) || is_locked(private::open_to_read(&dir.join(LOCK_FILE)))
}
