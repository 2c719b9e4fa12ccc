//! An identity provider: it signs JSON Web Tokens and serves the public keys. Its keys can be
//! replaced, and its document can be anything.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey,
};
use serde_json::{Value, json};

use crate::site::{FakeSite, SitePage};

/// A key for tests alone.
const RSA_2048: &[u8] = include_bytes!("issuer/rsa_2048.pk8");
/// Where the document with the keys is.
const KEYS: &str = "/keys.json";

/// A key that signs tokens.
pub struct SigningKey {
    name: String,
    pair: SigningPair,
}

enum SigningPair {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(rsa::KeyPair),
}

impl SigningKey {
    /// A new P-256 key.
    pub fn es256(name: &str) -> Self {
        let (random, scheme) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(scheme, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(scheme, document.as_ref(), &random);
        Self::of(name, SigningPair::Es256(pair.expect("a key")))
    }

    /// A new Ed25519 key.
    pub fn eddsa(name: &str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key");
        Self::of(name, SigningPair::EdDsa(pair))
    }

    /// The one RSA key, of 2048 bits.
    pub fn rs256(name: &str) -> Self {
        let pair = rsa::KeyPair::from_pkcs8(RSA_2048).expect("a key");
        Self::of(name, SigningPair::Rs256(pair))
    }

    fn of(name: &str, pair: SigningPair) -> Self {
        Self {
            name: name.to_owned(),
            pair,
        }
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            SigningPair::Es256(_) => "ES256",
            SigningPair::EdDsa(_) => "EdDSA",
            SigningPair::Rs256(_) => "RS256",
        }
    }

    /// The public key as a JSON Web Key.
    pub fn public(&self) -> Value {
        let mut key = match &self.pair {
            SigningPair::Es256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": encoded(x), "y": encoded(y)})
            }
            SigningPair::EdDsa(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key().as_ref())})
            }
            SigningPair::Rs256(pair) => {
                let public: rsa::PublicKeyComponents<Vec<u8>> = pair.public().into();
                let (n, e) = (encoded(&public.n), encoded(&public.e));
                json!({"kty": "RSA", "n": n, "e": e})
            }
        };
        key["kid"] = self.name.clone().into();
        key["use"] = "sig".into();
        key
    }

    /// True if this key has signed a token. Looks at nothing but the signature.
    pub fn verifies(&self, token: &str) -> bool {
        let Some((message, signature)) = token.rsplit_once('.') else {
            return false;
        };
        let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else {
            return false;
        };
        let message = message.as_bytes();
        let verified = match &self.pair {
            SigningPair::Es256(pair) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key());
                key.verify(message, &signature)
            }
            SigningPair::EdDsa(pair) => {
                let key = UnparsedPublicKey::new(&ED25519, pair.public_key());
                key.verify(message, &signature)
            }
            SigningPair::Rs256(pair) => {
                let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public());
                key.verify(message, &signature)
            }
        };
        verified.is_ok()
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_with_head(&self.head(), claims)
    }

    /// The head of the tokens of this key.
    pub fn head(&self) -> Value {
        json!({"alg": self.algorithm(), "typ": "JWT", "kid": self.name})
    }

    /// A token with any head, signed as this key does.
    pub fn sign_with_head(&self, head: &Value, claims: &Value) -> String {
        let head = encoded(head.to_string().as_bytes());
        let message = format!("{head}.{}", encoded(claims.to_string().as_bytes()));
        let (bytes, random) = (message.as_bytes(), SystemRandom::new());
        let signature = match &self.pair {
            SigningPair::Es256(pair) => {
                encoded(pair.sign(&random, bytes).expect("a signature").as_ref())
            }
            SigningPair::EdDsa(pair) => encoded(pair.sign(bytes).as_ref()),
            SigningPair::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let signed = pair.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature);
                signed.expect("a signature");
                encoded(&signature)
            }
        };
        format!("{message}.{signature}")
    }
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The server of an issuer.
pub struct TestIssuer(FakeSite);

impl TestIssuer {
    /// An issuer that serves the public keys of `keys`.
    pub async fn start(keys: &[&SigningKey]) -> Self {
        let issuer = Self(FakeSite::start().await);
        issuer.serve(keys);
        issuer
    }

    /// Serves the public keys of `keys` from now on, and no others.
    pub fn serve(&self, keys: &[&SigningKey]) {
        self.serve_at(KEYS, keys);
    }

    /// Serves the public keys of `keys` at another path too.
    pub fn serve_at(&self, path: &str, keys: &[&SigningKey]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.public()).collect();
        self.0.page(path, SitePage::json(&json!({ "keys": keys })));
    }

    /// Serves `page` instead of a key set.
    pub fn serve_page(&self, page: SitePage) {
        self.0.page(KEYS, page);
    }

    /// The URL of the document.
    pub fn url(&self) -> String {
        format!("{}{KEYS}", self.0.url())
    }

    /// How often the document was asked for.
    pub fn requests(&self) -> usize {
        self.0.requests().len()
    }
}
