//! Checks of signatures for `jsonwebtoken` with `ring`, the one provider of cryptography of the
//! process (docs/decisions/0020).

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature as algorithms;
use ring::signature::{RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};
use signature::Verifier;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: refuse_to_sign,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `jsonwebtoken` use `ring` in this process.
pub(crate) fn install() {
    // Later calls fail, which is harmless.
    let _ = PROVIDER.install_default();
}

/// The algorithms that tokens may be signed with. None of them uses a shared secret.
pub(crate) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

fn refuse_to_sign(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let check = match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, e } => KeyCheck::Rsa {
            parameters: rsa_parameters(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?,
            n: n.clone(),
            e: e.clone(),
        },
        DecodingKeyKind::SecretOrDer(point) => {
            let scheme: &'static dyn algorithms::VerificationAlgorithm = match algorithm {
                Algorithm::ES256 => &algorithms::ECDSA_P256_SHA256_FIXED,
                Algorithm::ES384 => &algorithms::ECDSA_P384_SHA384_FIXED,
                Algorithm::EdDSA => &algorithms::ED25519,
                _ => return Err(ErrorKind::InvalidAlgorithm.into()),
            };
            KeyCheck::Point(UnparsedPublicKey::new(scheme, point.clone()))
        }
    };
    let algorithm = *algorithm;
    Ok(Box::new(RingVerifier { algorithm, check }))
}

/// Keys below 2,048 bits are refused.
fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &algorithms::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &algorithms::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &algorithms::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &algorithms::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &algorithms::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &algorithms::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

struct RingVerifier {
    algorithm: Algorithm,
    check: KeyCheck,
}

enum KeyCheck {
    Rsa {
        parameters: &'static RsaParameters,
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// A key on an elliptic curve.
    Point(UnparsedPublicKey<Vec<u8>>),
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match &self.check {
            KeyCheck::Rsa { parameters, n, e } => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            KeyCheck::Point(key) => key.verify(message, signature),
        };
        checked.map_err(|_| signature::Error::new())
    }
}
