//! Removes a folder of any depth with three open descriptors at most.
//!
//! ```text
//! root/a/b/c/…   ──▶   root/a  +  root/moved-0/c/…   ──▶   root/moved-0  +  root/moved-1/…   ──▶  …
//! ```
//! A subfolder that is not empty moves up to the root and is removed from there, so no folder is
//! ever reached through more than two others. Names are resolved in open folders and links are not
//! followed: nothing outside the root is touched, whatever a running program does meanwhile.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

/// Entries that are handled before the removal gives up: a program that creates files faster than
/// they are removed would keep it busy for ever.
const ENTRIES_MAX: u64 = 10_000_000;

const OPEN_FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes `path`: a folder and everything in it, or a link that is in its place. A missing folder
/// is removed already.
pub(super) fn remove_folder(path: &Path) -> io::Result<()> {
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name = CString::new(name.as_encoded_bytes())?;
    let parent = match openat(CWD, parent, OPEN_FOLDER - OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let root = match open_folder(parent.as_fd(), &name) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Ok(unlinkat(&parent, &name, AtFlags::empty())?);
        }
        opened => opened?,
    };
    let mut removal = FolderRemoval {
        root: Dir::new(root)?,
        handled: 0,
        moved: 0,
    };
    removal.empty_root()?;
    match unlinkat(&parent, &name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

/// A removal in progress.
struct FolderRemoval {
    root: Dir,
    /// Entries removed or moved.
    handled: u64,
    /// Subfolders moved to the root; the next one gets this number as its name.
    moved: u64,
}

impl FolderRemoval {
    /// Removes the entries of the root until none is left. A pass that removes nothing ends with the
    /// first error, so that one entry that cannot be removed keeps no other.
    fn empty_root(&mut self) -> io::Result<()> {
        loop {
            let handled = self.handled;
            let mut is_empty = true;
            let mut first_error = None;
            self.root.rewind();
            while let Some(entry) = self.root.read() {
                let entry = entry?;
                if is_dots(entry.file_name()) {
                    continue;
                }
                is_empty = false;
                if let Err(error) = self.remove_entry(entry.file_name(), entry.file_type()) {
                    first_error.get_or_insert(error);
                }
                if self.handled > ENTRIES_MAX {
                    return Err(io::Error::other("the folder is still being written to"));
                }
            }
            if is_empty {
                return Ok(());
            }
            if self.handled == handled {
                return Err(first_error.unwrap_or(Errno::NOTEMPTY).into());
            }
        }
    }

    /// Removes one entry of the root. The subfolders of a folder are moved to the root if they are
    /// not empty, and removed in the next pass.
    fn remove_entry(&mut self, name: &CStr, kind: FileType) -> Result<(), Errno> {
        if remove_leaf(self.root.fd()?, name, kind)? {
            self.handled += 1;
            return Ok(());
        }
        let mut folder = Dir::new(open_folder(self.root.fd()?, name)?)?;
        let mut first_error = None;
        while let Some(entry) = folder.read() {
            let entry = entry?;
            let inner = entry.file_name();
            if is_dots(inner) {
                continue;
            }
            let removed = match remove_leaf(folder.fd()?, inner, entry.file_type()) {
                Ok(false) => self.move_to_root(folder.fd()?, inner),
                removed => removed.map(drop),
            };
            match removed {
                Ok(()) => self.handled += 1,
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
            if self.handled > ENTRIES_MAX {
                break;
            }
        }
        match (
            unlinkat(self.root.fd()?, name, AtFlags::REMOVEDIR),
            first_error,
        ) {
            (Ok(()) | Err(Errno::NOENT), _) => {
                self.handled += 1;
                Ok(())
            }
            (Err(_), Some(error)) | (Err(error), None) => Err(error),
        }
    }

    fn move_to_root(&mut self, folder: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        loop {
            let moved = CString::new(format!("moved-{}", self.moved)).map_err(|_| Errno::INVAL)?;
            self.moved += 1;
            match renameat(folder, name, self.root.fd()?, &moved) {
                // The name is taken; each taken name is tried once.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                Err(Errno::ACCESS) => {
                    // A folder can only be moved by those who may write to it.
                    make_accessible(folder, name)?;
                    return renameat(folder, name, self.root.fd()?, &moved);
                }
                Err(Errno::NOENT) => return Ok(()),
                renamed => return renamed,
            }
        }
    }
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// Removes the entry `name` of `folder` unless it is a folder with entries; false if it is one.
fn remove_leaf(folder: BorrowedFd<'_>, name: &CStr, kind: FileType) -> Result<bool, Errno> {
    if kind != FileType::Directory {
        match unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(true),
            // A folder; Linux has the first error for it, other systems the second.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error),
        }
    }
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens the folder `name` of `parent`. A folder whose owner has no access gets it first.
fn open_folder(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let open = || openat(parent, name, OPEN_FOLDER, Mode::empty());
    let opened = match open() {
        Err(Errno::ACCESS) => {
            make_accessible(parent, name)?;
            open()?
        }
        opened => opened?,
    };
    // Entries can only be removed by those who may write to the folder.
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        let _ = rustix::fs::fchmod(&opened, Mode::RWXU);
    }
    Ok(opened)
}

/// Gives the owner of the folder `name` of `parent` access to it. Links are not followed.
#[cfg(target_os = "linux")]
fn make_accessible(parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    // A handle needs no access; its name in `/proc` leads to this very folder.
    let handle = openat(parent, name, OPEN_FOLDER | OFlags::PATH, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle));
    rustix::fs::chmod(path, Mode::RWXU)
}

/// Gives the owner of the folder `name` of `parent` access to it. Links are not followed.
#[cfg(not(target_os = "linux"))]
fn make_accessible(parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use rustix::fs::mkdirat;

    use super::*;

    /// A chain of `depth` folders in `dir`, with a file in every hundredth.
    fn chain(dir: &Path, depth: usize) {
        let mut at = openat(CWD, dir, OPEN_FOLDER, Mode::empty()).expect("a folder");
        for level in 0..depth {
            if level % 100 == 0 {
                let flags = OFlags::CREATE | OFlags::WRONLY;
                openat(&at, "file", flags, Mode::RUSR).expect("a file");
            }
            mkdirat(&at, "d", Mode::RWXU).expect("a folder");
            at = openat(&at, "d", OPEN_FOLDER, Mode::empty()).expect("a folder");
        }
    }

    /// The highest number of descriptors of this process below `dir` until `done`.
    #[cfg(target_os = "linux")]
    fn most_descriptors(dir: &Path, done: &std::sync::atomic::AtomicBool) -> usize {
        let mut most = 0;
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            let open = fs::read_dir("/proc/self/fd")
                .into_iter()
                .flatten()
                .flatten();
            let below = open.filter(|entry| {
                fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(dir))
            });
            most = most.max(below.count());
        }
        most
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn deep_folder_is_removed_with_few_descriptors() {
        use std::sync::atomic::{AtomicBool, Ordering};

        let home = tempfile::tempdir().expect("a folder");
        let root = home.path().join("root");
        for wide in ["a", "b", "c"] {
            fs::create_dir_all(root.join(wide)).expect("a folder");
            chain(&root.join(wide), 3_000);
        }
        // Names that the removal itself would use.
        for taken in ["moved-0", "moved-1", "moved-2"] {
            fs::create_dir_all(root.join(taken).join("inner/leaf")).expect("a folder");
        }
        fs::write(root.join("moved-3"), "x").expect("a file");
        let done = AtomicBool::new(false);
        let most = std::thread::scope(|scope| {
            let most = scope.spawn(|| most_descriptors(home.path(), &done));
            let removed = remove_folder(&root);
            done.store(true, Ordering::Relaxed);
            removed.expect("removed");
            most.join().expect("counted")
        });
        assert!(!root.exists());
        assert!(most <= 4, "{most} descriptors");
        remove_folder(&root).expect("removed twice");
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let home = tempfile::tempdir().expect("a folder");
        let (root, outside) = (home.path().join("root"), home.path().join("outside"));
        fs::create_dir_all(outside.join("inner")).expect("a folder");
        fs::write(outside.join("inner/file"), "x").expect("a file");
        fs::create_dir_all(root.join("a/b")).expect("a folder");
        for place in ["link", "a/link", "a/b/link"] {
            symlink(&outside, root.join(place)).expect("a link");
        }
        fs::hard_link(outside.join("inner/file"), root.join("a/hard")).expect("a link");
        remove_folder(&root).expect("removed");
        assert!(!root.exists() && outside.join("inner/file").exists());
        // A program may put a link in the place of its folder.
        symlink(&outside, &root).expect("a link");
        remove_folder(&root).expect("removed");
        assert!(!root.is_symlink() && outside.join("inner/file").exists());
    }

    /// Root needs no access; the test then shows only that nothing fails.
    #[test]
    fn folders_without_access_are_removed() {
        let home = tempfile::tempdir().expect("a folder");
        let root = home.path().join("root");
        fs::create_dir_all(root.join("a/b/c/d")).expect("a folder");
        fs::write(root.join("a/b/c/file"), "x").expect("a file");
        for folder in ["a/b/c/d", "a/b/c", "a/b", "a", ""] {
            let path = root.join(folder);
            let mode = fs::Permissions::from_mode(0o000);
            fs::set_permissions(path, mode).expect("changed");
        }
        remove_folder(&root).expect("removed");
        assert!(!root.exists());
    }
}
