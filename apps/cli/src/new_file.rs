//! A file that appears whole or not at all: it is written under another name in the same folder, synced,
//! and renamed at the end. Its mode is 0600 from its creation on.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

/// What happens to a file that has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExistingFile {
    Keep,
    Replace,
}

impl ExistingFile {
    /// The meaning of a flag `--force`.
    pub(crate) fn with_force(force: bool) -> Self {
        match force {
            true => Self::Replace,
            false => Self::Keep,
        }
    }
}

/// A file that is being written. Dropping it before [`finish`](Self::finish) leaves no file.
#[derive(Debug)]
pub(crate) struct NewFile {
    path: PathBuf,
    draft: PathBuf,
    existing: ExistingFile,
    file: Option<File>,
}

impl NewFile {
    /// Begins the file `path`. Fails with [`io::ErrorKind::AlreadyExists`] if it is there and is to
    /// be kept.
    pub(crate) fn create(path: &Path, existing: ExistingFile) -> io::Result<Self> {
        if existing == ExistingFile::Keep && path.symlink_metadata().is_ok() {
            return Err(already_exists());
        }
        let name = path.file_name();
        let name = name.ok_or_else(|| io::Error::other("the path names no file"))?;
        let draft = format!(".{}.{}.part", name.to_string_lossy(), std::process::id());
        let draft = path.with_file_name(draft);
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let file = Some(options.open(&draft)?);
        Ok(Self {
            path: path.to_owned(),
            draft,
            existing,
            file,
        })
    }

    /// Syncs the file and gives it its name.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            file.sync_all()?;
        }
        match self.existing {
            ExistingFile::Replace => fs::rename(&self.draft, &self.path)?,
            ExistingFile::Keep => self.rename_to_free_name()?,
        }
        let folder = self.path.parent().filter(|dir| !dir.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn rename_to_free_name(&self) -> io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(CWD, &self.draft, CWD, &self.path, flags) {
            // A file system without the flag: another file may come between the two steps.
            Err(Errno::INVAL | Errno::NOSYS) if self.path.symlink_metadata().is_err() => {
                fs::rename(&self.draft, &self.path)
            }
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) => Err(already_exists()),
            renamed => Ok(renamed?),
        }
    }
}

fn already_exists() -> io::Error {
    let text = "the file exists; choose another name, or replace it with --force";
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Ok(0),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After a rename there is nothing of this name.
        let _ = fs::remove_file(&self.draft);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("a folder").flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn file_appears_when_it_is_finished_and_is_private() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("export");
        let mut file = NewFile::create(&path, ExistingFile::Keep).expect("created");
        file.write_all(b"whole").expect("written");
        assert!(!path.exists());
        file.finish().expect("finished");
        assert_eq!(fs::read(&path).expect("a file"), b"whole");
        let mode = path.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(names(dir.path()), ["export"]);
    }

    #[test]
    fn existing_file_is_replaced_only_on_request() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("export");
        let late = NewFile::create(&path, ExistingFile::Keep).expect("created");
        fs::write(&path, "old").expect("written");
        let refused = late.finish().map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::AlreadyExists));
        let refused = NewFile::create(&path, ExistingFile::Keep).map_err(|error| error.kind());
        assert_eq!(refused.err(), Some(io::ErrorKind::AlreadyExists));
        assert_eq!(fs::read(&path).expect("kept"), b"old");
        let mut file = NewFile::create(&path, ExistingFile::Replace).expect("created");
        file.write_all(b"new").expect("written");
        file.finish().expect("finished");
        assert_eq!(fs::read(&path).expect("replaced"), b"new");
        // One that is given up leaves nothing.
        drop(NewFile::create(&path, ExistingFile::Replace).expect("created"));
        assert_eq!(names(dir.path()), ["export"]);
    }
}
