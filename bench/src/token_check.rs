//! What it costs to find out who sends a token: the first time, when its signature is checked, and again,
//! when it is known. Beside each first check stands the bare signature check of the same token.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::json;
use turnwire_dial::{Dialer, DialerOptions};
use turnwire_event::{Clock, Owner, TenantId};
use turnwire_identity::{
    Authenticator, ClaimNames, JwtRules, KeyLocation, Scope, ScopeSet, TokenFile, TokenGrant,
};
use turnwire_session::SystemClock;
use turnwire_testkit::issuer::SigningKey;

use crate::stat::{median, percentile};

/// Tokens of each kind that are checked for the first time.
const TOKENS: u64 = 1_000;
/// How often one token is sent again, in rounds of which the median is taken.
const PASSES: u32 = 1_000;
const ROUNDS: usize = 51;

const ISSUER: &str = "https://id.example.com/";
const AUDIENCE: &str = "turnwire";
const TENANT: &str = "3c33212c-d119-4ef1-8db0-2ca93cd3b2dd";

/// Microseconds of one kind of token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TokenCost {
    pub name: String,
    /// The first check: median and 99th percentile; none of a token without a signature.
    pub first: Option<(f64, f64)>,
    /// The bare check of the signature.
    pub signature: Option<f64>,
    /// The check of a token that is known.
    pub again: f64,
}

/// Measures every kind of token; key files are written into `dir`.
pub async fn run(dir: &Path) -> io::Result<Vec<TokenCost>> {
    let mut costs = Vec::new();
    for (name, key) in [
        ("RS256", SigningKey::rs256("rsa")),
        ("ES256", SigningKey::es256("p256")),
        ("EdDSA", SigningKey::eddsa("ed25519")),
    ] {
        costs.push(signed(name, &key, dir).await?);
    }
    costs.push(stored(dir)?);
    Ok(costs)
}

/// A token that is valid for an hour. `number` makes it unlike the others.
pub fn token(key: &SigningKey, number: u64) -> String {
    let expires_s = SystemClock.now().as_millis() / 1_000 + 3_600;
    key.sign(
        &json!({"iss": ISSUER, "aud": AUDIENCE, "exp": expires_s, "tenant_id": TENANT,
        "sub": "user-42", "scope": "turnwire:own", "jti": number.to_string()}),
    )
}

/// Writes the key set that `key` alone is in; returns its path and the settings of a server for it.
pub fn write_keys(key: &SigningKey, dir: &Path) -> io::Result<Vec<(&'static str, String)>> {
    let path = dir.join("keys.json");
    std::fs::write(&path, json!({ "keys": [key.public()] }).to_string())?;
    Ok(vec![
        ("TURNWIRE_AUTH_MODE", "jwt".to_owned()),
        ("TURNWIRE_AUTH_JWT_ISSUER", ISSUER.to_owned()),
        ("TURNWIRE_AUTH_JWT_AUDIENCE", AUDIENCE.to_owned()),
        ("TURNWIRE_AUTH_JWT_JWKS", path.display().to_string()),
    ])
}

async fn signed(name: &str, key: &SigningKey, dir: &Path) -> io::Result<TokenCost> {
    write_keys(key, dir)?;
    let rules = JwtRules {
        issuer: ISSUER.to_owned(),
        audiences: vec![AUDIENCE.to_owned()],
        leeway_ms: 30_000,
        claims: ClaimNames {
            principal: "sub".to_owned(),
            tenant: "tenant_id".to_owned(),
            scopes: "scope".to_owned(),
            default_tenant: None,
            base_scopes: ScopeSet::default(),
        },
    };
    let location = KeyLocation::File(dir.join("keys.json"));
    let dialer = Dialer::new(DialerOptions::default()).map_err(io::Error::other)?;
    let authenticator = Authenticator::with_issuer(rules, location, dialer, Arc::new(SystemClock));
    let authenticator = authenticator.await.map_err(io::Error::other)?;
    let (mut first, mut signature) = (Vec::new(), Vec::new());
    for number in 0..TOKENS {
        let token = token(key, number);
        // Whichever comes first finds the caches as the other's last turn has left them.
        for is_bare in [number % 2 == 0, number % 2 == 1] {
            let begun = Instant::now();
            let is_valid = match is_bare {
                true => key.verifies(&token),
                false => is_accepted(&authenticator, &token),
            };
            let spent = begun.elapsed().as_secs_f64() * 1e6;
            if !is_valid {
                return Err(io::Error::other(format!("a token of {name} was refused")));
            }
            if is_bare { &mut signature } else { &mut first }.push(spent);
        }
    }
    Ok(TokenCost {
        name: name.to_owned(),
        first: Some((median(&first), percentile(&first, 99.0))),
        signature: Some(median(&signature)),
        again: again(&authenticator, &token(key, TOKENS))?,
    })
}

/// An API token, of which the server knows the hash.
fn stored(dir: &Path) -> io::Result<TokenCost> {
    let file = TokenFile::new(dir.join("tokens.json"));
    let grant = TokenGrant {
        owner: Owner {
            tenant: TENANT.parse::<TenantId>().map_err(io::Error::other)?,
            principal: "user-42".parse().map_err(io::Error::other)?,
        },
        scopes: [Scope::Own].into_iter().collect(),
        label: None,
        expires_at: None,
    };
    let created = file.create(grant, SystemClock.now());
    let (token, _) = created.map_err(io::Error::other)?;
    let authenticator = Authenticator::with_tokens(file, Arc::new(SystemClock));
    let authenticator = authenticator.map_err(io::Error::other)?;
    Ok(TokenCost {
        name: "API token".to_owned(),
        first: None,
        signature: None,
        again: again(&authenticator, token.reveal())?,
    })
}

/// Microseconds of the check of a known token.
fn again(authenticator: &Authenticator, token: &str) -> io::Result<f64> {
    if !is_accepted(authenticator, token) {
        return Err(io::Error::other("a token was refused"));
    }
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..PASSES {
            std::hint::black_box(is_accepted(authenticator, std::hint::black_box(token)));
        }
        rounds.push(begun.elapsed().as_secs_f64() * 1e6 / f64::from(PASSES));
    }
    Ok(median(&rounds))
}

/// Checks a token as a request does. With the keys at hand nothing is waited for.
fn is_accepted(authenticator: &Authenticator, token: &str) -> bool {
    let mut check = pin!(authenticator.authenticate(Some(token)));
    let polled = check.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    matches!(polled, Poll::Ready(Ok(_)))
}
