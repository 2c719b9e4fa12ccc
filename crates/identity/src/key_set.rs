//! The public keys of an issuer: a JSON Web Key Set (RFC 7517).

use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::ring_verifier;

/// The largest document that is read.
pub(crate) const KEY_SET_BYTES_MAX: usize = 256 << 10;
/// The most keys of a set: issuers have two or three.
const KEYS_MAX: usize = 64;

/// Why a document is no usable key set. For operators.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// It is no JSON object with a list `keys`.
    #[error("no JSON Web Key Set: {0}")]
    Malformed(String),
    /// No key of it can check a signature.
    #[error(
        "the key set has no key for signatures that can be used: RSA of 2048 bits and more, \
         P-256, P-384 or Ed25519"
    )]
    NoKey,
    /// It has more keys than are read.
    #[error("the key set has more than {KEYS_MAX} keys")]
    TooMany,
}

/// The usable keys of an issuer.
#[derive(Debug)]
pub(crate) struct KeySet {
    keys: Vec<Arc<IssuerKey>>,
}

/// A key that checks signatures.
#[derive(Debug)]
pub(crate) struct IssuerKey {
    /// The `kid` by which tokens name it.
    name: Option<String>,
    /// The algorithms that it may be used with.
    algorithms: Vec<Algorithm>,
    pub(crate) decoding: DecodingKey,
    /// Tells it from every other key, whatever their names.
    pub(crate) fingerprint: Arc<str>,
}

impl KeySet {
    /// Reads a document. Keys of other kinds and for other uses are left out.
    pub(crate) fn parse(document: &[u8]) -> Result<Self, KeySetError> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        ring_verifier::install();
        let document: Document = serde_json::from_slice(document)
            .map_err(|error| KeySetError::Malformed(error.to_string()))?;
        if document.keys.len() > KEYS_MAX {
            return Err(KeySetError::TooMany);
        }
        let keys: Vec<_> = document
            .keys
            .into_iter()
            .filter_map(|key| serde_json::from_value(key).ok())
            .filter_map(|key| IssuerKey::of(&key).map(Arc::new))
            .collect();
        if keys.is_empty() {
            return Err(KeySetError::NoKey);
        }
        Ok(Self { keys })
    }

    /// The keys that may have signed a token with this head.
    pub(crate) fn candidates<'a>(
        &'a self,
        name: Option<&'a str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'a Arc<IssuerKey>> {
        self.keys.iter().filter(move |key| {
            let is_named = name.is_none_or(|name| key.name.as_deref() == Some(name));
            is_named && key.algorithms.contains(&algorithm)
        })
    }

    /// True if a key has this name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|key| key.name.as_deref() == Some(name))
    }

    /// True if the key with this fingerprint is one of them.
    pub(crate) fn contains(&self, fingerprint: &str) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|key| &*key.fingerprint == fingerprint)
    }
}

impl IssuerKey {
    /// The key, if signatures can be checked with it.
    fn of(key: &Jwk) -> Option<Self> {
        let purpose = &key.common.public_key_use;
        if purpose.is_some() && *purpose != Some(PublicKeyUse::Signature) {
            return None;
        }
        let mut algorithms = algorithms_of(&key.algorithm);
        if let Some(named) = &key.common.key_algorithm {
            let named: Algorithm = named.to_string().parse().ok()?;
            algorithms.retain(|algorithm| *algorithm == named);
        }
        let decoding = DecodingKey::from_jwk(key).ok()?;
        let fingerprint = fingerprint(&decoding, &algorithms)?;
        Some(Self {
            name: key.common.key_id.clone(),
            algorithms,
            decoding,
            fingerprint,
        })
    }
}

/// What a key of this kind can check.
fn algorithms_of(key: &AlgorithmParameters) -> Vec<Algorithm> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match key {
        AlgorithmParameters::RSA(_) => vec![RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256 => {
            vec![ES256]
        }
        AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P384 => {
            vec![ES384]
        }
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            vec![EdDSA]
        }
        // A shared secret is no public key: who can check with it can also sign.
        _ => Vec::new(),
    }
}

/// The fingerprint of a key that has a size that is accepted.
fn fingerprint(key: &DecodingKey, algorithms: &[Algorithm]) -> Option<Arc<str>> {
    let mut hash = Sha256::new();
    match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, e } => {
            let digits = n.iter().skip_while(|byte| **byte == 0).count();
            if !(256..=1024).contains(&digits) {
                return None;
            }
            hash.update(n);
            hash.update([0]);
            hash.update(e);
        }
        DecodingKeyKind::SecretOrDer(point) => {
            let length = match algorithms.first()? {
                Algorithm::ES256 => 65,
                Algorithm::ES384 => 97,
                _ => 32,
            };
            if point.len() != length {
                return None;
            }
            hash.update(point);
        }
    }
    let hash = hash.finalize();
    let digits: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    (!algorithms.is_empty()).then(|| digits.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const P256_X: &str = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4";
    const P256_Y: &str = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM";

    fn p256(name: &str) -> Value {
        json!({"kty": "EC", "crv": "P-256", "kid": name, "x": P256_X, "y": P256_Y})
    }

    fn rsa(bytes: usize) -> Value {
        use base64::Engine as _;
        let n = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(vec![0xc5; bytes]);
        json!({"kty": "RSA", "n": n, "e": "AQAB"})
    }

    fn with(key: Value, field: &str, value: &str) -> Value {
        let mut key = key;
        key[field] = value.into();
        key
    }

    fn parse(keys: &[Value]) -> Result<KeySet, KeySetError> {
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes())
    }

    #[test]
    fn keys_are_found_by_name_and_algorithm() {
        let set = parse(&[p256("a"), with(p256("b"), "x", P256_Y), rsa(256)]).expect("a set");
        assert_eq!(set.candidates(Some("a"), Algorithm::ES256).count(), 1);
        assert_eq!(set.candidates(Some("a"), Algorithm::RS256).count(), 0);
        assert_eq!(set.candidates(Some("c"), Algorithm::ES256).count(), 0);
        assert_eq!(set.candidates(None, Algorithm::ES256).count(), 2);
        assert_eq!(set.candidates(None, Algorithm::PS512).count(), 1);
        assert!(set.has_name("b") && !set.has_name("c"));
        let found = set.candidates(Some("b"), Algorithm::ES256).next();
        let fingerprint = &found.expect("a key").fingerprint;
        assert!(set.contains(fingerprint) && !set.contains("0011223344556677"));
    }

    #[test]
    fn named_algorithm_is_the_only_one() {
        let set = parse(&[with(rsa(256), "alg", "RS256")]).expect("a set");
        assert_eq!(set.candidates(None, Algorithm::RS256).count(), 1);
        assert_eq!(set.candidates(None, Algorithm::RS512).count(), 0);
    }

    #[test]
    fn unusable_keys_are_left_out() {
        let secret = json!({"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"});
        for unusable in [
            secret.clone(),
            with(secret, "alg", "HS256"),
            with(p256("a"), "use", "enc"),
            with(p256("a"), "alg", "HS256"),
            with(p256("a"), "alg", "ES384"),
            with(p256("a"), "crv", "P-521"),
            with(p256("a"), "x", "AAAA"),
            with(p256("a"), "kty", "XX"),
            rsa(128),
            rsa(2000),
            json!({"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}),
            json!("text"),
        ] {
            let alone = parse(std::slice::from_ref(&unusable)).expect_err("no key");
            assert_eq!(alone, KeySetError::NoKey, "{unusable}");
            let set = parse(&[unusable, p256("good")]).expect("one key");
            assert_eq!(set.keys.len(), 1);
        }
    }

    #[test]
    fn malformed_documents_are_refused() {
        for document in ["", "[]", "{}", "{\"keys\": 1}", "\u{0}"] {
            let refused = KeySet::parse(document.as_bytes()).expect_err("malformed");
            assert!(matches!(refused, KeySetError::Malformed(_)), "{document}");
        }
        let many = vec![p256("a"); KEYS_MAX + 1];
        assert_eq!(parse(&many).expect_err("many"), KeySetError::TooMany);
    }
}
