//! The health of an open store: damage that its reads and writes met, and files that are gone. Each fault
//! is logged once, when it is found.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::StoreFault;
use crate::sqlite::folder::watch::{FolderWatch, LostFile};

/// The faults of a store.
#[derive(Debug)]
pub(crate) struct StoreHealth {
    database: PathBuf,
    is_damaged: AtomicBool,
    is_lost: AtomicBool,
    /// Unset for a read-only store.
    watch: OnceLock<FolderWatch>,
}

impl StoreHealth {
    pub(crate) fn new(database: PathBuf) -> Self {
        Self {
            database,
            is_damaged: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            watch: OnceLock::new(),
        }
    }

    /// Sets the files that must stay where they are.
    pub(crate) fn watch(&self, watch: FolderWatch) {
        let _ = self.watch.set(watch);
    }

    /// Records that a page which sessions share is damaged.
    pub(crate) fn report_damage(&self, cause: &str) {
        if !self.is_damaged.swap(true, Ordering::AcqRel) {
            tracing::error!(
                cause,
                database = %self.database.display(),
                "the database is damaged: no new turn is accepted until it is mended. Stop the server, check the file \
                 with `sqlite3 FILE \"PRAGMA integrity_check\"` and restore a backup (docs/operations.md, \"A damaged \
                 database\")"
            );
        }
    }

    /// True if a file of the store is gone from its name now.
    pub(crate) fn is_lost(&self) -> bool {
        self.watch.get().and_then(FolderWatch::find_lost).is_some()
    }

    /// The fault of the store, if it has one. A folder that was moved away and back is no fault.
    pub(crate) fn fault(&self) -> Option<StoreFault> {
        let lost = self.watch.get().and_then(FolderWatch::find_lost);
        let was_lost = self.is_lost.swap(lost.is_some(), Ordering::AcqRel);
        match lost {
            Some((path, lost)) if !was_lost => report_lost(path, lost),
            None if was_lost => {
                tracing::warn!("the files of the store are back: turns are accepted")
            }
            _ => {}
        }
        if lost.is_some() {
            Some(StoreFault::FolderLost)
        } else if self.is_damaged.load(Ordering::Acquire) {
            Some(StoreFault::Damaged)
        } else {
            None
        }
    }
}

fn report_lost(path: &Path, lost: LostFile) {
    let what = match lost {
        LostFile::Removed => "removed or moved",
        LostFile::Replaced => "replaced",
    };
    tracing::error!(
        path = %path.display(),
        "a file of the store, or its folder, was {what} while the server runs: no new turn is accepted, and what is \
         written now is lost when the server ends. Move it back, or stop the server and restore a backup \
         (docs/operations.md, \"A lost data folder\")"
    );
}
