//! Digests of texts: SHA-256 in hex, whole or shortened. Parts are length-prefixed, so that
//! ("ab", "c") and ("a", "bc") have different digests.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Hex digits of a short digest: 48 bits, far more than a pack's versions ever need.
const SHORT: usize = 12;

/// A digest to which parts are added.
#[derive(Clone, Default)]
pub(crate) struct Digest(Sha256);

impl Digest {
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut digest = Self::default();
        for part in parts {
            digest.add(part);
        }
        digest
    }

    pub(crate) fn add(&mut self, part: &str) {
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part.as_bytes());
    }

    /// The whole digest, 64 hex digits.
    pub(crate) fn full(self) -> String {
        let mut hex = String::with_capacity(64);
        for byte in self.0.finalize() {
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    /// The first hex digits of the digest.
    pub(crate) fn short(self) -> String {
        let mut hex = self.full();
        hex.truncate(SHORT);
        hex
    }

    /// The first 64 bits as a number.
    pub(crate) fn number(self) -> u64 {
        let bytes = self.0.finalize();
        bytes
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}
