//! The files of a pack as text, wherever they come from: a folder, the binary, or a test.

mod skeleton;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::text::digest::Digest;

include!(concat!(env!("OUT_DIR"), "/packs.rs"));

/// The maximum number of files: far more than the largest pack has, so that a wrong folder is noticed
/// at once.
pub(crate) const FILES_MAX: usize = 1_000;
/// The maximum size of one file: that of a request.
const FILE_BYTES_MAX: usize = 1 << 20;
/// The maximum size of a cassette: about an hour of recorded model calls.
const CASSETTE_BYTES_MAX: usize = 16 << 20;
/// The maximum depth of folders: a pack needs two, and a cycle of links has no end.
const DEPTH_MAX: usize = 4;
/// The maximum number of skipped entries that are reported.
const SKIPPED_MAX: usize = 20;
/// The folder that is never read: a team's own tools may use it.
const UNREAD: &str = "evals";

/// The file of [`PackFiles::relay`] whose last block is `relay`.
const RELAYED: &str = "orchestrator.yaml";

/// A folder that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot be read: {cause}")]
pub struct PackReadError {
    /// The file or folder that cannot be read.
    pub path: String,
    /// The error of the operating system.
    pub cause: std::io::Error,
}

impl PackReadError {
    fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |cause| Self { path, cause }
    }
}

/// The files of a pack: path relative to the pack's folder, with `/` → text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackFiles {
    texts: BTreeMap<String, String>,
    /// Entries of the folder that are not read: path → reason.
    skipped: BTreeMap<String, &'static str>,
}

impl PackFiles {
    /// Reads a folder. Hidden files and `evals/` are skipped; of a file that is too large, or of too
    /// many files, only as much is read as [`crate::check()`] needs to report it. A pipe, socket or
    /// device is never opened: reading it may never end.
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
                    None => self.skip(relative, NOT_A_FILE),
                }
            } else if !kind.is_dir() {
                self.skip(relative, NOT_A_FILE);
            } else if !walk.is_inside(&path) {
                self.skip(
                    relative,
                    "a link to a folder outside of the pack: it is not read",
                );
            } else if depth == DEPTH_MAX {
                self.skip(relative, "a folder this deep is not read");
            } else {
                self.walk(walk, &path, &format!("{relative}/"), depth + 1)?;
            }
        }
        Ok(())
    }

    fn skip(&mut self, path: String, reason: &'static str) {
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.insert(path, reason);
        }
    }

    /// Entries of the folder that are not read: path, reason.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.skipped
            .iter()
            .map(|(path, reason)| (path.as_str(), *reason))
    }

    /// The demo pack, built into the binary.
    pub fn market() -> Self {
        Self::from_pairs(MARKET.iter().copied())
    }

    /// The pack whose only agent is the upstream in `TURNWIRE_UPSTREAM`, built into the binary. With a
    /// `model` the upstream is a Chat Completions API.
    pub fn relay(model: Option<&str>) -> Self {
        let mut files = Self::from_pairs(RELAY.iter().copied());
        if let (Some(model), Some(text)) = (model, files.texts.get_mut(RELAYED)) {
            let model = serde_json::Value::from(model);
            text.push_str(&format!("  dialect: openai_chat\n  model: {model}\n"));
        }
        files
    }

    /// A small complete pack to start from; `name` is its name.
    pub fn skeleton(name: &str) -> Self {
        Self::from_pairs(skeleton::files(name))
    }

    /// Files from paths and texts.
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
            skipped: BTreeMap::new(),
        }
    }

    /// All files, sorted by path.
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

/// The maximum size of a file of [`PackFiles`], by its path.
pub(crate) fn bytes_max(path: &str) -> usize {
    match path.starts_with("cassettes/") {
        true => CASSETTE_BYTES_MAX,
        false => FILE_BYTES_MAX,
    }
}

/// Why a pipe, a socket or a device is skipped.
const NOT_A_FILE: &str = "this is not a file: it is not read";

/// The canonical path of the folder that is read.
struct Walk {
    root: PathBuf,
}

impl Walk {
    /// True if `dir` is inside the pack's folder, also if a link leads there.
    fn is_inside(&self, dir: &Path) -> bool {
        dir.canonicalize()
            .is_ok_and(|dir| dir.starts_with(&self.root))
    }
}

/// The text of a file; `None` if it is not a regular file. Invalid UTF-8 becomes U+FFFD, which
/// [`crate::check()`] reports.
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
