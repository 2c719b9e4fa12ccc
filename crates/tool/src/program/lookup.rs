//! Where the programs of tools are: absolute paths, and names in the `PATH` of the server.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The `PATH` of this process, which programs of tools get too.
pub(crate) fn server_path() -> String {
    let path = std::env::var("PATH").ok().filter(|path| !path.is_empty());
    path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned())
}

/// The executable file of `program`: an absolute path, or a name in a folder of `path`.
pub(crate) fn find_in(path: &str, program: &str) -> Option<PathBuf> {
    let is_executable = |path: &Path| {
        let metadata = path.metadata();
        metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        let path = PathBuf::from(program);
        return (path.is_absolute() && is_executable(&path)).then_some(path);
    }
    let folders = path.split(':').filter(|folder| !folder.is_empty());
    let mut files = folders.map(|folder| Path::new(folder).join(program));
    files.find(|path| path.is_absolute() && is_executable(path))
}

/// The executable file of `program` for a server that is started in the environment of this process.
pub fn find_program(program: &str) -> Option<PathBuf> {
    find_in(&server_path(), program)
}
