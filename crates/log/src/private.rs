//! Files and folders that only the server's user can read: a log has prompts and answers in it.
//!
//! The mode is set as a file is created, so that there is no moment in which others can open it. Only
//! regular files are opened: a link would lead to a file of somebody else, and a FIFO would block.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

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
    let file = open_file(path)?;
    file.set_len(0)?;
    Ok(file)
}

/// Opens a file for reading and writing; creates it with [`FILE_MODE`] if it is missing.
pub fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(FILE_MODE);
    open_regular(path, options.truncate(false))
}

/// Opens an existing file for reading.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open_regular(path, OpenOptions::new().read(true))
}

/// Reads an existing file; at most `bytes_max` bytes of it.
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_to_read(path)?
        .take(bytes_max)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file, and nothing else: neither follows a link nor waits for the other end of a
/// FIFO.
fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
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

    #[test]
    fn links_fifos_and_folders_are_not_opened() {
        let root = tempfile::tempdir().expect("a folder");
        let [target, link, fifo] = ["target", "link", "fifo"].map(|name| root.path().join(name));
        std::fs::write(&target, "kept").expect("a file");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        let mode = rustix::fs::Mode::from_raw_mode(FILE_MODE);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a FIFO");
        for path in [&link, &fifo, &root.path().to_owned()] {
            assert!(create_file(path).is_err(), "{}", path.display());
            assert!(open_file(path).is_err(), "{}", path.display());
            assert!(read_file(path, 10).is_err(), "{}", path.display());
        }
        assert_eq!(read_file(&target, 3).expect("the file"), b"kep");
    }
}
