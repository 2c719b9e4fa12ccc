//! A key that makes a submit repeatable: whoever sends the same body with the same key again gets
//! the same turn, so that an answer that was lost can be asked for once more.

use std::fmt::{self, Write as _};

/// An `Idempotency-Key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key that nobody has used; none if the system gives no randomness.
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

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fresh_and_fit_a_header() {
        let keys = [Key::random(), Key::random()].map(|key| key.expect("randomness").to_string());
        assert_ne!(keys[0], keys[1]);
        for key in keys {
            assert!(
                key.len() == 32 && key.bytes().all(|b| b.is_ascii_hexdigit()),
                "{key}"
            );
        }
    }
}
