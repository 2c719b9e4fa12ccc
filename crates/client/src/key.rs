//! The idempotency key of a submit: the server starts one turn for all requests with the same key
//! and body, so that a submit whose response was lost can be repeated.

use std::fmt::{self, Write as _};

/// The value of an `Idempotency-Key` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitKey(String);

impl SubmitKey {
    /// A new random key, or `None` if the system provides no randomness.
    pub fn random() -> Option<Self> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).ok()?;
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Some(Self(text))
    }
}

impl fmt::Display for SubmitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_valid_header_values() {
        let keys = [SubmitKey::random(), SubmitKey::random()]
            .map(|key| key.expect("randomness").to_string());
        assert_ne!(keys[0], keys[1]);
        for key in keys {
            assert!(
                key.len() == 32 && key.bytes().all(|b| b.is_ascii_hexdigit()),
                "{key}"
            );
        }
    }
}
