//! The files of a pack as text, wherever they come from: a folder, the binary, or a test.

mod skeleton;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::text::digest::Digest;

include!(concat!(env!("OUT_DIR"), "/market.rs"));

/// Files of a pack: far more than the largest has, so that a wrong folder is noticed at once.
pub(crate) const FILES_MAX: usize = 1_000;
/// Bytes of one file: as much as a request may bring in.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a cassette: an hour of talk with a model, which nobody writes by hand.
const CASSETTE_BYTES_MAX: usize = 16 << 20;
/// Folders inside folders: a pack needs two, and a circle of links has no end.
const DEPTH_MAX: usize = 4;
/// Entries that are not read are told up to this many.
const ODD_MAX: usize = 20;
/// The folder that nothing reads: it may hold whatever a team's own tools put there.
const UNREAD: &str = "evals";

/// A folder that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot be read: {cause}")]
pub struct PackReadError {
    /// Which file or folder.
    pub path: String,
    /// What the system said.
    pub cause: std::io::Error,
}

impl PackReadError {
    fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |cause| Self { path, cause }
    }
}

/// The files of a pack: relative path with `/` → text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackFiles {
    texts: BTreeMap<String, String>,
    /// What the folder has and nobody reads, with the reason: path → reason.
    odd: BTreeMap<String, &'static str>,
}

impl PackFiles {
    /// Reads a folder. Hidden files and `evals/` are passed over; of a file that is too long, or of
    /// too many files, only as much is read as `check` needs to say so. What is neither a file nor
    /// a folder is never opened: a pipe has no end.
    pub fn read(dir: &Path) -> Result<Self, PackReadError> {
        let mut files = Self::default();
        let root = dir.canonicalize().map_err(PackReadError::at(dir))?;
        files.walk(&Walk { root }, dir, "", 0)?;
        Ok(files)
    }

    fn walk(
        &mut self,
        walk: &Walk,
        dir: &Path,
        prefix: &str,
        depth: usize,
    ) -> Result<(), PackReadError> {
        let listed = std::fs::read_dir(dir).map_err(PackReadError::at(dir))?;
        for entry in listed {
            let path = entry.map_err(PackReadError::at(dir))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let relative = format!("{prefix}{name}");
            if name.starts_with('.') || relative == UNREAD || self.texts.len() > FILES_MAX {
                continue;
            }
            // Links are followed: a mounted folder may be made of nothing else.
            let kind = std::fs::metadata(&path).map_err(PackReadError::at(&path))?;
            if kind.is_file() {
                match text(&path, bytes_max(&relative))? {
                    Some(text) => drop(self.texts.insert(relative, text)),
                    None => self.pass_over(relative, NOT_A_FILE),
                }
            } else if !kind.is_dir() {
                self.pass_over(relative, NOT_A_FILE);
            } else if !walk.is_inside(&path) {
                self.pass_over(
                    relative,
                    "a link to a folder outside of the pack: it is not read",
                );
            } else if depth == DEPTH_MAX {
                self.pass_over(relative, "a folder this deep is not read");
            } else {
                self.walk(walk, &path, &format!("{relative}/"), depth + 1)?;
            }
        }
        Ok(())
    }

    fn pass_over(&mut self, path: String, why: &'static str) {
        if self.odd.len() < ODD_MAX {
            self.odd.insert(path, why);
        }
    }

    /// What the folder has and nobody reads: path, reason.
    pub(crate) fn odd(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.odd.iter().map(|(path, why)| (path.as_str(), *why))
    }

    /// The demo pack, which is built in.
    pub fn market() -> Self {
        Self::from_pairs(MARKET.iter().copied())
    }

    /// A small complete pack to begin with.
    pub fn skeleton(name: &str) -> Self {
        Self::from_pairs(skeleton::files(name))
    }

    /// From paths and texts.
    pub fn from_pairs<P, T>(pairs: impl IntoIterator<Item = (P, T)>) -> Self
    where
        P: Into<String>,
        T: Into<String>,
    {
        let pairs = pairs.into_iter();
        Self {
            texts: pairs
                .map(|(path, text)| (path.into(), text.into()))
                .collect(),
            odd: BTreeMap::new(),
        }
    }

    /// Every file, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of a file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// A digest of all paths and texts.
    pub fn digest(&self) -> String {
        Digest::of(self.iter().flat_map(|(path, text)| [path, text])).short()
    }
}

/// How long a file may be, by where it stands.
pub(crate) fn bytes_max(path: &str) -> usize {
    match path.starts_with("cassettes/") {
        true => CASSETTE_BYTES_MAX,
        false => FILE_BYTES_MAX,
    }
}

/// Why a pipe, a socket or a device is passed over.
const NOT_A_FILE: &str = "this is not a file: it is not read";

/// The folder that is read, without links in its path.
struct Walk {
    root: PathBuf,
}

impl Walk {
    /// Whether a folder stands below the pack's, also where it is reached by a link.
    fn is_inside(&self, dir: &Path) -> bool {
        dir.canonicalize()
            .is_ok_and(|dir| dir.starts_with(&self.root))
    }
}

/// The text of a file; none if it is not one after all. Bytes that are no text become U+FFFD,
/// which `check` tells about.
fn text(path: &Path, bytes_max: usize) -> Result<Option<String>, PackReadError> {
    let file = std::fs::File::open(path).map_err(PackReadError::at(path))?;
    // Asked again of what is open now: the name may mean something else than a moment ago.
    if !file.metadata().map_err(PackReadError::at(path))?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(PackReadError::at(path))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests;
