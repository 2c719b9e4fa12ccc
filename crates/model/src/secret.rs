//! A provider's API key: read once from an environment variable or a file, zeroised on drop and
//! never printed. Errors name the source of a key and never its content.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Largest size of a key in bytes: the longest in use are tokens of a few thousand bytes, and most
/// servers reject larger headers.
pub const KEY_BYTES_MAX: usize = 8_192;

/// An API key. It can be sent in a header and nothing else; its `Debug` form hides it.
#[derive(Clone)]
pub struct ApiKey(Zeroizing<String>);

/// The source of a [`ApiKey`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable, by name.
    Variable(String),
    /// A file that contains the key and nothing else.
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

/// A [`ApiKey`] could not be read. The message names the source and never shows its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiKeyError {
    /// The environment variable is not set.
    #[error("the key should be in {0}, which is not set")]
    Missing(KeySource),
    /// Reading the file failed.
    #[error("the key should be in {0}, which cannot be read: {1}")]
    Unreadable(KeySource, std::io::ErrorKind),
    /// The source holds only white space.
    #[error("the key should be in {0}, which is empty")]
    Empty(KeySource),
    /// The source holds more than [`KEY_BYTES_MAX`] bytes.
    #[error("{0} has more than {KEY_BYTES_MAX} bytes, too many for a key")]
    TooLong(KeySource),
    /// The key has bytes that cannot be sent in a header.
    #[error("the key in {0} has characters other than visible ASCII, so it cannot be sent")]
    NotVisible(KeySource),
}

impl ApiKey {
    /// Reads the key from the variable `name`, whose value is `value`.
    pub fn from_variable(name: &str, value: Option<String>) -> Result<Self, ApiKeyError> {
        let source = KeySource::Variable(name.to_owned());
        match value.map(Zeroizing::new) {
            Some(text) => Self::checked(text.as_bytes(), source),
            None => Err(ApiKeyError::Missing(source)),
        }
    }

    /// Reads the key from the file at `path`.
    pub fn from_file(path: &Path) -> Result<Self, ApiKeyError> {
        let source = KeySource::File(path.to_owned());
        match read_bounded(path) {
            Ok(bytes) => Self::checked(&bytes, source),
            Err(error) => Err(ApiKeyError::Unreadable(source, error.kind())),
        }
    }

    /// The key in clear text, for the header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    fn checked(bytes: &[u8], source: KeySource) -> Result<Self, ApiKeyError> {
        let key = bytes.trim_ascii();
        if bytes.len() > KEY_BYTES_MAX {
            return Err(ApiKeyError::TooLong(source));
        }
        if key.is_empty() {
            return Err(ApiKeyError::Empty(source));
        }
        match std::str::from_utf8(key) {
            Ok(text) if key.iter().all(u8::is_ascii_graphic) => {
                Ok(Self(Zeroizing::new(text.to_owned())))
            }
            Ok(_) | Err(_) => Err(ApiKeyError::NotVisible(source)),
        }
    }
}

/// Reads at most one byte more than a key may have.
fn read_bounded(path: &Path) -> std::io::Result<Zeroizing<Vec<u8>>> {
    // Reading anything else, such as a pipe without a writer, could block forever.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let limit = KEY_BYTES_MAX + 1;
    // Capacity for all bytes: a growing buffer would leave unwiped copies in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(limit + 1));
    let file = std::fs::File::open(path)?;
    file.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests;
