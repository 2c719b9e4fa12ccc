//! Folders for programs: one for each session, and some that belong to none.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use turnwire_event::SessionId;

/// Only the server's own user may look into the folder of a session.
const FOLDER_MODE: u32 = 0o700;

/// The folders below one folder.
#[derive(Clone, Debug)]
pub struct Folders(PathBuf);

impl Folders {
    /// Those below `dir`, which need not be there.
    pub fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    /// The folder of a session, made if it is not there.
    pub fn session(&self, session_id: SessionId) -> io::Result<PathBuf> {
        self.make(&session_id.to_string())
    }

    /// A folder for what belongs to no session, such as a tool server; `name` is one plain word.
    pub fn shared(&self, name: &str) -> io::Result<PathBuf> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // A session's id never begins so.
        self.make(&format!("shared-{name}"))
    }

    fn make(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self.0.join(name);
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(FOLDER_MODE).create(&dir)?;
        Ok(dir)
    }

    /// Takes a session's folder away with all that is in it.
    pub fn clear(&self, session_id: SessionId) -> io::Result<()> {
        match std::fs::remove_dir_all(self.0.join(session_id.to_string())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// The sessions that have a folder, read as they are asked for; what else lies there is
    /// passed over.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> + use<> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }
}
