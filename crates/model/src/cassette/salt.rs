//! The salt of a cassette's digests. The same text has another digest in every file, so that
//! precomputed tables of likely texts do not work and two files of one conversation cannot be
//! linked. Guessing single texts remains possible for anyone with the file.

use std::sync::Arc;

use turnwire_event::content::sha256_hex;

/// Bytes of a new salt: enough to make two equal salts practically impossible.
const SALT_BYTES: usize = 16;
/// Longest accepted salt in characters: four times what is written.
const SALT_CHARS_MAX: usize = 128;

/// The salt of a cassette, in hex; empty for files that predate salts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CassetteSalt(Arc<str>);

impl CassetteSalt {
    /// A new random salt.
    pub(super) fn random() -> std::io::Result<Self> {
        let mut bytes = [0; SALT_BYTES];
        let filled = getrandom::fill(&mut bytes);
        filled.map_err(|error| std::io::Error::other(error.to_string()))?;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(hex.into()))
    }

    /// Checks the salt in the header of a file.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        match text.chars().count() {
            0 => Err("a `salt` has at least one character".to_owned()),
            1..=SALT_CHARS_MAX => Ok(Self(text.into())),
            _ => Err(format!("a `salt` has at most {SALT_CHARS_MAX} characters")),
        }
    }

    /// The salt as written to a file; `None` for an empty one.
    pub(super) fn as_written(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(&*self.0)
    }

    /// The salted digest for a SHA-256 in lower-case hex.
    pub(super) fn digest(&self, sha256: &str) -> String {
        match self.as_written() {
            Some(salt) => sha256_hex(format!("{salt}{sha256}").as_bytes()),
            None => sha256.to_owned(),
        }
    }
}
