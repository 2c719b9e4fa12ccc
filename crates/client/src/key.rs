//! The idempotency key of a submit: the server starts one turn for all requests with the same key
//! and body, so that a submit whose response was lost can be repeated.

use std::fmt;

/// The value of an `Idempotency-Key` header, for
/// [`Client::submit_once`](crate::Client::submit_once).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitKey(String);

impl SubmitKey {
    /// A new random key, or `None` if the system provides no randomness.
    pub fn random() -> Option<Self> {
        let (high, low) = (getrandom::u64().ok()?, getrandom::u64().ok()?);
        Some(Self(format!("{high:016x}{low:016x}")))
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
