//! A provider's key: read once from a variable or a file, wiped when it is no longer needed, and
//! shown to nobody. An error says where a key should have been and never what is there.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Bytes of a key: the longest in use are tokens of a few thousand, and a header that is larger is
/// refused by most servers.
pub const KEY_BYTES_MAX: usize = 8_192;

/// A key. It can be sent, and nothing else.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// Where a key is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// In a variable of the environment, by its name.
    Variable(String),
    /// In a file.
    File(PathBuf),
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the variable `{name}`"),
            Self::File(path) => write!(f, "the file `{}`", path.display()),
        }
    }
}

/// There is no key where it should be. Says where, and nothing of what is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// The variable is not set.
    #[error("the key should be in {0}, which is not set")]
    Missing(KeySource),
    /// The file cannot be read.
    #[error("the key should be in {0}, which cannot be read: {1}")]
    Unreadable(KeySource, std::io::ErrorKind),
    /// There is nothing but blanks.
    #[error("the key should be in {0}, which is empty")]
    Empty(KeySource),
    /// It is too long to be a key.
    #[error("{0} has more than {KEY_BYTES_MAX} bytes; that is no key")]
    TooLong(KeySource),
    /// It cannot be sent in a header.
    #[error("the key in {0} has characters other than visible ASCII, so it cannot be sent")]
    NotVisible(KeySource),
}

impl Secret {
    /// The key in the variable `name`, which stands for `value`.
    pub fn from_variable(name: &str, value: Option<String>) -> Result<Self, BadKey> {
        let from = KeySource::Variable(name.to_owned());
        match value.map(Zeroizing::new) {
            Some(text) => Self::judge(text.as_bytes(), from),
            None => Err(BadKey::Missing(from)),
        }
    }

    /// The key in the file at `path`.
    pub fn from_file(path: &Path) -> Result<Self, BadKey> {
        let from = KeySource::File(path.to_owned());
        match contents(path) {
            Ok(bytes) => Self::judge(&bytes, from),
            Err(error) => Err(BadKey::Unreadable(from, error.kind())),
        }
    }

    /// The key itself, for the header it goes into.
    pub fn expose(&self) -> &str {
        &self.0
    }

    fn judge(bytes: &[u8], from: KeySource) -> Result<Self, BadKey> {
        let key = bytes.trim_ascii();
        if bytes.len() > KEY_BYTES_MAX {
            return Err(BadKey::TooLong(from));
        }
        if key.is_empty() {
            return Err(BadKey::Empty(from));
        }
        match std::str::from_utf8(key) {
            Ok(text) if key.iter().all(u8::is_ascii_graphic) => {
                Ok(Self(Zeroizing::new(text.to_owned())))
            }
            Ok(_) | Err(_) => Err(BadKey::NotVisible(from)),
        }
    }
}

/// What is in a file, and at most one byte more than a key may have.
fn contents(path: &Path) -> std::io::Result<Zeroizing<Vec<u8>>> {
    // Anything else, such as a pipe that nobody writes to, could keep the reader for ever.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let most = KEY_BYTES_MAX + 1;
    // Room for all of it, so that no half-grown copy stays behind in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(most + 1));
    let file = std::fs::File::open(path)?;
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests;
