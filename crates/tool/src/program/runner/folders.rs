//! The folders of programs: one for each session, and shared ones for MCP servers.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use turnwire_event::SessionId;

use super::remove::remove_folder;

/// Only the user of the server may read the folders.
const FOLDER_MODE: u32 = 0o700;

/// The folders below one directory.
#[derive(Clone, Debug)]
pub struct ProgramFolders(PathBuf);

impl ProgramFolders {
    /// Folders below `dir`, which need not exist.
    pub fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    /// The folder of a session, created if it is missing.
    pub fn session(&self, session_id: SessionId) -> io::Result<PathBuf> {
        self.create(&session_id.to_string())
    }

    /// A folder without a session, for an MCP server for example; `name` has letters, digits, `_` and
    /// `-` only.
    pub fn shared(&self, name: &str) -> io::Result<PathBuf> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // No session id begins like this.
        self.create(&format!("shared-{name}"))
    }

    fn create(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self.0.join(name);
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(FOLDER_MODE).create(&dir)?;
        Ok(dir)
    }

    /// Deletes the folder of a session, however deep it is. Blocks the thread until it is gone.
    pub fn remove(&self, session_id: SessionId) -> io::Result<()> {
        remove_folder(&self.0.join(session_id.to_string()))
    }

    /// The sessions that have a folder, read lazily; other entries are skipped.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> + use<> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }
}
