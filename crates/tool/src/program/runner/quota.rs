//! The limits of a session's folder: bytes on disk, and files. A program that exceeds them is ended.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

/// The shortest pause between two measurements of a folder that is full when a program starts.
const PAUSE_FULL: Duration = Duration::from_millis(100);
/// The shortest pause between two measurements of another folder.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// A pause is this many times as long as the measurement before it, so that measuring takes a
/// twentieth of one processor at most.
const PAUSE_FACTOR: u32 = 20;
/// The unit of the blocks that a file has on disk.
const BLOCK_BYTES: u64 = 512;

/// The limits of one folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderLimits {
    /// Bytes that the files take on disk.
    pub bytes: u64,
    /// The number of files and folders.
    pub entries: u64,
}

/// The content of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FolderUsage {
    bytes: u64,
    entries: u64,
}

/// The folder has so much in it, or a part that cannot be read, that no program may start in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the folder exceeds its limits by more than a quarter, or cannot be measured")]
pub(crate) struct FolderOverfull;

/// Watches one folder while a program runs in it. A folder that is full when the program starts may
/// not grow, so that a program can still delete files. Above its limits by a quarter no program
/// starts: otherwise each could add what it writes before it is measured.
#[derive(Debug)]
pub(crate) struct FolderQuota {
    dir: PathBuf,
    limits: FolderLimits,
    pause_min: Duration,
}

impl FolderQuota {
    /// Measures `dir`; the limits are `limits`, or what `dir` has now if that is more.
    pub(crate) async fn new(dir: PathBuf, limits: FolderLimits) -> Result<Self, FolderOverfull> {
        let overfull = FolderLimits {
            bytes: limits.bytes.saturating_add(limits.bytes / 4),
            entries: limits.entries.saturating_add(limits.entries / 4),
        };
        let (_, usage) = measured(dir.clone(), overfull).await;
        let usage = usage.ok_or(FolderOverfull)?;
        let is_full = usage.bytes > limits.bytes || usage.entries > limits.entries;
        Ok(Self {
            dir,
            limits: FolderLimits {
                bytes: limits.bytes.max(usage.bytes),
                entries: limits.entries.max(usage.entries),
            },
            pause_min: if is_full { PAUSE_FULL } else { PAUSE_MIN },
        })
    }

    /// Returns as soon as the folder exceeds its limits.
    pub(crate) async fn exceeded(&self) {
        let mut pause = self.pause_min;
        loop {
            sleep(pause).await;
            let (took, usage) = measured(self.dir.clone(), self.limits).await;
            if usage.is_none() {
                return;
            }
            pause = self.pause_min.max(took * PAUSE_FACTOR);
        }
    }

    /// Whether the folder exceeds its limits.
    pub(crate) async fn is_exceeded(&self) -> bool {
        let (_, usage) = measured(self.dir.clone(), self.limits).await;
        usage.is_none()
    }
}

/// The content of `dir` and the time that measuring it took; `None` if it exceeds `limits` or cannot
/// be measured: a program must not hide files in a folder that it makes unreadable.
async fn measured(dir: PathBuf, limits: FolderLimits) -> (Duration, Option<FolderUsage>) {
    let measure = move || {
        let started = Instant::now();
        let usage = usage(&dir, limits);
        (started.elapsed(), usage)
    };
    let measured = tokio::task::spawn_blocking(measure).await;
    // The thread only breaks with the process.
    measured.unwrap_or_default()
}

/// The content of `dir`, read up to the limits. Links are not followed; the bytes of a file with
/// several names count once, and each name is an entry, so that `linked` has no more than those.
fn usage(dir: &Path, limits: FolderLimits) -> Option<FolderUsage> {
    let mut usage = FolderUsage::default();
    let mut linked = HashSet::new();
    // Folders share the path of their parent: thousands of whole paths would take tens of megabytes.
    let mut folders: Vec<(Rc<Path>, OsString)> = vec![(Rc::from(dir), OsString::new())];
    while let Some((parent, name)) = folders.pop() {
        let folder: Rc<Path> = parent.join(name).into();
        let entries = match fs::read_dir(&folder) {
            // Deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.ok()?,
        };
        for entry in entries {
            let entry = entry.ok()?;
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata.ok()?,
            };
            usage.entries += 1;
            let has_names = metadata.nlink() > 1 && !metadata.is_dir();
            if !has_names || linked.insert((metadata.dev(), metadata.ino())) {
                usage.bytes = usage.bytes.saturating_add(metadata.blocks() * BLOCK_BYTES);
            }
            if usage.entries > limits.entries || usage.bytes > limits.bytes {
                return None;
            }
            if metadata.is_dir() {
                folders.push((Rc::clone(&folder), entry.file_name()));
            }
        }
    }
    Some(usage)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const LIMITS: FolderLimits = FolderLimits {
        bytes: 1 << 20,
        entries: 4,
    };

    #[tokio::test]
    async fn folder_is_measured_without_links_and_may_not_grow_when_full() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), vec![7; 500_000]).expect("a file");
        fs::create_dir(path("inner")).expect("a folder");
        symlink("/", path("inner/root")).expect("a link");
        let quota = FolderQuota::new(dir.path().to_owned(), LIMITS).await;
        let quota = quota.expect("room");
        assert!(!quota.is_exceeded().await);
        fs::write(path("inner/second"), vec![7; 700_000]).expect("a file");
        assert!(quota.is_exceeded().await, "bytes");
        // The folder is full now: it may shrink, and not grow.
        let full = FolderQuota::new(dir.path().to_owned(), LIMITS).await;
        let full = full.expect("a quarter more at most");
        assert!(!full.is_exceeded().await);
        fs::write(path("file"), vec![7; 600_000]).expect("a file");
        assert!(full.is_exceeded().await, "it grows");
        fs::write(path("file"), vec![7; 800_000]).expect("a file");
        let refused = FolderQuota::new(dir.path().to_owned(), LIMITS).await;
        assert_eq!(refused.expect_err("too much"), FolderOverfull);
        fs::remove_file(path("inner/second")).expect("removed");
        for name in ["a", "b"] {
            fs::write(path(name), "").expect("a file");
        }
        assert!(quota.is_exceeded().await, "entries");
    }
    #[test]
    fn file_with_several_names_counts_once() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("file"), vec![7; 700_000]).expect("a file");
        for name in ["a", "b", "c"] {
            fs::hard_link(dir.path().join("file"), dir.path().join(name)).expect("a link");
        }
        let usage = super::usage(dir.path(), LIMITS).expect("within the limits");
        assert_eq!(usage.entries, 4);
        assert!(usage.bytes < LIMITS.bytes, "{usage:?}");
        fs::hard_link(dir.path().join("file"), dir.path().join("d")).expect("a link");
        assert_eq!(super::usage(dir.path(), LIMITS), None, "names are entries");
    }
}
