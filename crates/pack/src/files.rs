//! The files of a pack as text, wherever they come from: a folder, the binary, or a test.

use std::collections::BTreeMap;
use std::path::Path;

use crate::digest::Digest;

include!(concat!(env!("OUT_DIR"), "/market.rs"));

/// A folder that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refuses.
    #[error("{path}: cannot be read: {cause}")]
    Io {
        /// Which file or folder.
        path: String,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// The files of a pack: relative path with `/` → text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    texts: BTreeMap<String, String>,
}

impl Files {
    /// Reads a folder.
    pub fn read(dir: &Path) -> Result<Self, ReadError> {
        let _ = dir;
        Ok(Self::default())
    }

    /// The demo pack, which is built in.
    pub fn market() -> Self {
        Self::from_pairs(MARKET.iter().copied())
    }

    /// A small complete pack to begin with.
    pub fn skeleton(name: &str) -> Self {
        let _ = name;
        Self::default()
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
