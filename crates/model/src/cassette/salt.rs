//! What a cassette's digests are mixed with, so that the same words have another digest in every
//! file: nobody can have a list of digests of likely words ready, or see that two files are of one
//! conversation. Whoever has the file can still try words one by one.

use std::sync::Arc;

use turnwire_event::content::sha256_hex;

/// Bytes of a new salt: as many as make two alike unthinkable.
const BYTES: usize = 16;
/// Characters of a salt that is read: four times what is written.
const CHARS_MAX: usize = 128;

/// The salt of a cassette, in hex; files from before there were salts have an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salt(Arc<str>);

impl Salt {
    /// A new one.
    pub(super) fn random() -> std::io::Result<Self> {
        let mut bytes = [0; BYTES];
        let filled = getrandom::fill(&mut bytes);
        filled.map_err(|error| std::io::Error::other(error.to_string()))?;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(hex.into()))
    }

    /// One that is written.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        match text.chars().count() {
            0 => Err("a `salt` has at least one character".to_owned()),
            1..=CHARS_MAX => Ok(Self(text.into())),
            _ => Err(format!("a `salt` has at most {CHARS_MAX} characters")),
        }
    }

    /// As it is written; none where there is none.
    pub(super) fn written(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(&*self.0)
    }

    /// What stands in the file for something with this SHA-256, in lower-case hex.
    pub(super) fn over(&self, sha256: &str) -> String {
        match self.written() {
            Some(salt) => sha256_hex(format!("{salt}{sha256}").as_bytes()),
            None => sha256.to_owned(),
        }
    }
}
