//! The files of a pack as text, wherever they come from: a folder, the binary, or a test.

mod skeleton;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use crate::digest::Digest;

include!(concat!(env!("OUT_DIR"), "/market.rs"));

/// Files of a pack: far more than the largest has, so that a wrong folder is noticed at once.
pub(crate) const FILES_MAX: usize = 1_000;
/// Bytes of one file: as much as a request may bring in.
pub(crate) const FILE_BYTES_MAX: usize = 1 << 20;
/// Folders inside folders: a pack needs three, and a circle of links has no end.
const DEPTH_MAX: usize = 8;

/// A folder that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot be read: {cause}")]
pub struct ReadError {
    /// Which file or folder.
    pub path: String,
    /// What the system said.
    pub cause: std::io::Error,
}

impl ReadError {
    fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |cause| Self { path, cause }
    }
}

/// The files of a pack: relative path with `/` → text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    texts: BTreeMap<String, String>,
}

impl Files {
    /// Reads a folder. Hidden files are passed over; of a file that is too long, or of too many
    /// files, only as much is read as `check` needs to say so.
    pub fn read(dir: &Path) -> Result<Self, ReadError> {
        let mut files = Self::default();
        files.walk(dir, "", 0)?;
        Ok(files)
    }

    fn walk(&mut self, dir: &Path, prefix: &str, depth: usize) -> Result<(), ReadError> {
        let listed = std::fs::read_dir(dir).map_err(ReadError::at(dir))?;
        for entry in listed {
            let path = entry.map_err(ReadError::at(dir))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || self.texts.len() > FILES_MAX {
                continue;
            }
            let relative = format!("{prefix}{name}");
            // Links are followed: a mounted folder may be made of nothing else.
            if !path.is_dir() {
                self.texts.insert(relative, text(&path)?);
            } else if depth < DEPTH_MAX {
                self.walk(&path, &format!("{relative}/"), depth + 1)?;
            }
        }
        Ok(())
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

/// The text of a file. Bytes that are no text become U+FFFD, which `check` tells about.
fn text(path: &Path) -> Result<String, ReadError> {
    let file = std::fs::File::open(path).map_err(ReadError::at(path))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(ReadError::at(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
