//! API tokens: 128 random bits each, of which the server stores only a hash.

use std::fmt;

use sha2::{Digest as _, Sha256};
use turnwire_event::Ulid;

const PREFIX: &str = "twt_";

/// The SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

/// A new token. Nothing but its hash is kept: whoever creates it reads it once.
pub struct NewToken(String);

impl NewToken {
    /// One that nobody has: 128 bits of the operating system.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut random = [0u8; 16];
        getrandom::fill(&mut random)?;
        Ok(Self(format!(
            "{PREFIX}{}",
            Ulid(u128::from_be_bytes(random))
        )))
    }

    /// The token that a client sends.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The hash that the server keeps.
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }
}

impl TokenHash {
    /// The hash of a token as a client sends it.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Parses 64 hexadecimal digits.
    pub fn parse(hex: &str) -> Option<Self> {
        let mut bytes = [0u8; 32];
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let digit = |at: usize| (pair[at] as char).to_digit(16);
            *byte = (digit(0)? << 4 | digit(1)?) as u8;
        }
        Some(Self(bytes))
    }

    /// The name of the token: the first digits of its hash, which tell nothing about the token.
    pub fn id(&self) -> String {
        let digits: String = self.0[..6].iter().map(|b| format!("{b:02x}")).collect();
        format!("tok_{digits}")
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_found_by_their_hash() {
        let (one, other) = (NewToken::random(), NewToken::random());
        let (one, other) = (one.expect("a token"), other.expect("a token"));
        assert_ne!(one.reveal(), other.reveal());
        assert!(one.reveal().starts_with(PREFIX) && one.reveal().len() == 30);
        assert_eq!(TokenHash::of(one.reveal()), one.hash());
        assert_eq!(TokenHash::parse(&one.hash().to_string()), Some(one.hash()));
        assert_eq!(one.hash().id().len(), 16);
    }

    #[test]
    fn hash_is_64_hexadecimal_digits() {
        let digits = "0f".repeat(32);
        let parsed = TokenHash::parse(&digits).expect("a hash");
        assert_eq!(parsed.to_string(), digits);
        assert_eq!(parsed.id(), "tok_0f0f0f0f0f0f");
        for bad in [
            "",
            "0f",
            &"0g".repeat(32),
            &"é".repeat(32),
            &"0f".repeat(33),
        ] {
            assert_eq!(TokenHash::parse(bad), None, "{bad}");
        }
    }
}
