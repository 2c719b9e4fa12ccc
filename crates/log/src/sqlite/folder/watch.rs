//! The files of an open store under their names: a file that is gone from its name is lost with the
//! process, whatever is written to it.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The identity of a file or folder, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl From<&Metadata> for FileId {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
        }
    }
}

/// Paths with the files that they named when the store was opened. SQLite neither removes nor replaces one
/// of them while a connection is open.
#[derive(Debug)]
pub(crate) struct FolderWatch(Vec<(PathBuf, FileId)>);

impl FolderWatch {
    /// Remembers what `names` in `dir`, and `dir` itself, are now.
    pub(crate) fn start(dir: &Path, names: &[String]) -> io::Result<Self> {
        let files = names.iter().map(|name| dir.join(name));
        let paths = [dir.to_owned()].into_iter().chain(files);
        let watched = paths.map(|path| {
            let id = FileId::from(&fs::metadata(&path)?);
            Ok((path, id))
        });
        watched.collect::<io::Result<_>>().map(Self)
    }

    /// The first path that no longer names its file, and whether something else has its name. A path that
    /// cannot be looked up for another reason counts as unchanged.
    pub(crate) fn find_lost(&self) -> Option<(&Path, LostFile)> {
        self.0.iter().find_map(|(path, id)| {
            let lost = match &fs::metadata(path) {
                Ok(found) if FileId::from(found) == *id => return None,
                Ok(_) => LostFile::Replaced,
                Err(error) => match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => LostFile::Removed,
                    _ => return None,
                },
            };
            Some((path.as_path(), lost))
        })
    }
}

/// What happened to a path of a [`FolderWatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostFile {
    Removed,
    Replaced,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_replaced_and_moved_files_are_found() {
        let root = tempfile::tempdir().expect("a folder");
        let dir = root.path().join("data");
        fs::create_dir(&dir).expect("a folder");
        let file = dir.join("lock");
        fs::write(&file, "").expect("a file");
        let watch = FolderWatch::start(&dir, &["lock".to_owned()]).expect("both are there");
        assert_eq!(watch.find_lost(), None);
        let elsewhere = root.path().join("elsewhere");
        fs::rename(&file, &elsewhere).expect("moved");
        assert_eq!(watch.find_lost(), Some((file.as_path(), LostFile::Removed)));
        fs::write(&file, "").expect("another file");
        assert_eq!(
            watch.find_lost(),
            Some((file.as_path(), LostFile::Replaced))
        );
        fs::rename(&elsewhere, &file).expect("moved back");
        assert_eq!(watch.find_lost(), None);
        fs::rename(&dir, &elsewhere).expect("moved");
        assert_eq!(watch.find_lost(), Some((dir.as_path(), LostFile::Removed)));
    }
}
