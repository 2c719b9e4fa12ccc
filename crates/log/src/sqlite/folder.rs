//! The folder of a database: the locks that keep other processes out, and the files that must be in it
//! before and while the store is open.

pub(crate) mod lock;
pub(crate) mod watch;
pub(crate) mod health;

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use crate::error::OpenError;
use crate::sqlite::DATABASE_FILE;
use crate::sqlite::folder::lock::LOCK_FILE;
use crate::sqlite::folder::watch::FolderWatch;

/// A restored database until it gets its name.
pub(crate) const RESTORE_DRAFT: &str = "turnwire.sqlite3.restore";
/// The endings of the database's files.
const DATABASE_SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-mark"];
/// Bytes of a WAL file without a frame: its header.
const WAL_HEADER_BYTES: u64 = 32;

/// The names of the files that exist while the store is open.
fn files_while_open() -> Vec<String> {
    let database = DATABASE_SUFFIXES.map(|suffix| format!("{DATABASE_FILE}{suffix}"));
    let lock = LOCK_FILE.to_owned();
    database.into_iter().chain([lock]).collect()
}

/// Watches the folder of a store that is open, and the files that hold its events. Without `lock` the
/// folder is still locked, and without the mark nothing is lost.
pub(crate) fn watch(dir: &Path) -> io::Result<FolderWatch> {
    let held = ["", "-wal", "-shm"].map(|suffix| format!("{DATABASE_FILE}{suffix}"));
    FolderWatch::start(dir, &held)
}

/// Rejects a folder in which a file of the store is something else: SQLite would follow a link, and wait
/// for the other end of a FIFO.
pub(crate) fn check_file_types(dir: &Path) -> Result<(), OpenError> {
    for name in files_while_open().into_iter().chain(["reserve".to_owned()]) {
        let path = dir.join(name);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(not_found_out(&path, &error)),
        };
        if let Some(kind) = irregular_kind(found.file_type()) {
            let path = path.display().to_string();
            return Err(OpenError::NotAFile { path, kind });
        }
    }
    Ok(())
}

/// The error of a file that may be there or not.
fn not_found_out(path: &Path, error: &io::Error) -> OpenError {
    OpenError::Io {
        path: path.display().to_string(),
        cause: error.to_string(),
    }
}

/// The name of a file type that is not a regular file.
fn irregular_kind(found: FileType) -> Option<&'static str> {
    match found {
        found if found.is_file() => None,
        found if found.is_symlink() => Some("a symbolic link"),
        found if found.is_dir() => Some("a folder"),
        found if found.is_fifo() => Some("a FIFO"),
        _ => Some("a socket or a device"),
    }
}

/// Rejects a folder in which a restore was cut off: its files may be of two lives.
pub(crate) fn check_no_restore(dir: &Path) -> Result<(), OpenError> {
    let draft = dir.join(RESTORE_DRAFT);
    match draft.symlink_metadata() {
        Ok(_) => Err(OpenError::UnfinishedRestore(draft.display().to_string())),
        Err(_) => Ok(()),
    }
}

/// Rejects a folder whose database file is missing or empty although a mark or frames of a WAL are left:
/// SQLite would create an empty database and discard the WAL. The mark and the first frame are written
/// after the first page of the database is on disk.
pub(crate) fn check_not_missing(dir: &Path) -> Result<(), OpenError> {
    let bytes = |suffix: &str| {
        let path = dir.join(format!("{DATABASE_FILE}{suffix}"));
        match path.metadata() {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(not_found_out(&path, &error)),
        }
    };
    let state = match bytes("")? {
        None => "is missing",
        Some(0) => "is empty",
        Some(_) => return Ok(()),
    };
    let wal = bytes("-wal")?.filter(|bytes| *bytes > WAL_HEADER_BYTES);
    let wal = wal.map(|bytes| format!("its WAL ({DATABASE_FILE}-wal, {bytes} bytes)"));
    let mark = bytes("-mark")?.map(|_| format!("its commit mark ({DATABASE_FILE}-mark)"));
    let evidence = match (wal, mark) {
        (None, None) => return Ok(()),
        (Some(one), None) | (None, Some(one)) => format!("{one} is"),
        (Some(wal), Some(mark)) => format!("{wal} and {mark} are"),
    };
    Err(OpenError::Missing {
        path: dir.join(DATABASE_FILE).display().to_string(),
        state,
        evidence,
    })
}
