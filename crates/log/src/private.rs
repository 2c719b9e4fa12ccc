//! Files and folders that only the server's user can read: a log has prompts and answers in it.
//!
//! The mode is set as a file is created, so that there is no moment in which others can open it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The mode of a private folder.
pub const FOLDER_MODE: u32 = 0o700;
/// The mode of a private file.
pub const FILE_MODE: u32 = 0o600;

/// Creates a folder and its missing parents with [`FOLDER_MODE`]; a folder that exists keeps its
/// mode.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE).create(path)
}

/// Creates a file with [`FILE_MODE`], or empties one that exists.
pub fn create_file(path: &Path) -> io::Result<File> {
    options().truncate(true).open(path)
}

/// Opens a file for reading and writing; creates it with [`FILE_MODE`] if it is missing.
pub fn open_file(path: &Path) -> io::Result<File> {
    options().truncate(false).open(path)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(FILE_MODE);
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        let meta = path.metadata().expect("a file");
        meta.permissions().mode() & 0o777
    }

    #[test]
    fn new_files_and_folders_are_private() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("a/b");
        create_folder(&folder).expect("a folder");
        let (created, opened) = (folder.join("created"), folder.join("opened"));
        create_file(&created).expect("a file");
        open_file(&opened).expect("a file");
        let modes = [&folder, &created, &opened].map(|path| mode(path));
        assert_eq!(modes, [FOLDER_MODE, FILE_MODE, FILE_MODE]);
    }
}
