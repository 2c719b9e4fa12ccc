//! The hash chain: `hash(n) = SHA-256(hash(n-1) ‖ stored bytes)`, `hash(0)` of the session id.

use sha2::{Digest, Sha256};
use turnwire_event::SessionId;

/// The hash at one event: of the event and of every event before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHash(pub [u8; 32]);

impl ChainHash {
    /// The hash before the first event of a session: `hash(0)`, which [`next`](Self::next) continues.
    pub fn seed(session: SessionId) -> Self {
        Self(Sha256::digest(session.to_string().as_bytes()).into())
    }

    /// A hash as its column has it. A column of another length gives a hash that matches no event.
    pub(crate) fn from_column(bytes: &[u8]) -> Self {
        Self(bytes.try_into().unwrap_or([0; 32]))
    }

    /// The hash at the next event, which has these bytes.
    #[must_use]
    pub fn next(self, bytes: &[u8]) -> Self {
        Self(
            Sha256::new()
                .chain_update(self.0)
                .chain_update(bytes)
                .finalize()
                .into(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_depends_on_every_byte_and_every_predecessor() {
        let seed = ChainHash::seed(SessionId(turnwire_event::Ulid(1)));
        assert_ne!(seed, ChainHash::seed(SessionId(turnwire_event::Ulid(2))));
        let one = seed.next(b"a");
        assert_eq!(one, seed.next(b"a"));
        assert_ne!(one, seed.next(b"b"));
        assert_ne!(one.next(b"c"), seed.next(b"c"));
    }
}
