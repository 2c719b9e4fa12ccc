//! Servers with authentication, and callers with tokens.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;
use turnwire_event::{Owner, Timestamp};
use turnwire_identity::{Scope, TokenFile, TokenGrant};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::issuer::{SigningKey, TestIssuer};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};

pub(super) const ACME: &str = "3c33212c-d119-4ef1-8db0-2ca93cd3b2dd";
pub(super) const OTHER: &str = "7d1c3c0e-55b1-4c0c-9a3e-0a4a3d0f7e11";
pub(super) const ISSUER: &str = "https://id.example.com/";
pub(super) const AUDIENCE: &str = "turnwire";

/// A script whose answers take a moment.
pub(super) fn slow_script() -> ModelScript {
    let text = "one two three four five six seven eight nine ten ".repeat(4);
    ModelScript::new()
        .on("slow", [ScriptStep::slow(&text, 5, 100)])
        .on("", [ScriptStep::text("hi")])
}

/// A client that sends this token.
pub(super) fn with_token(server: &TestServer, token: &str) -> ApiClient {
    server
        .api()
        .with("authorization", &format!("Bearer {token}"))
}

/// A server that accepts API tokens.
pub(super) struct TokenServer {
    pub(super) server: TestServer,
    pub(super) file: TokenFile,
    _home: TempDir,
}

impl TokenServer {
    pub(super) async fn start(options: ServerOptions) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let file = TokenFile::new(home.path().join("tokens.json"));
        let options = ServerOptions {
            home: Some(home.path().to_owned()),
            ..options
                .set("auth", "mode", "tokens")
                .set("auth", "reload_ms", 100)
        };
        Self {
            server: TestServer::start(options).await,
            file,
            _home: home,
        }
    }

    /// A new token and its id, once the server knows it.
    pub(super) async fn token(&self, principal: &str, scopes: &[Scope]) -> (String, String) {
        self.token_until(principal, scopes, None).await
    }

    /// A new token that ends after a time.
    pub(super) async fn token_until(
        &self,
        principal: &str,
        scopes: &[Scope],
        lifetime: Option<Duration>,
    ) -> (String, String) {
        let now = Timestamp::from_millis(seconds_from_now(0) * 1000);
        let grant = TokenGrant {
            owner: Owner {
                tenant: ACME.parse().expect("a tenant"),
                principal: principal.parse().expect("a principal"),
            },
            scopes: scopes.iter().copied().collect(),
            label: None,
            expires_at: lifetime
                .map(|time| Timestamp::from_millis((since_epoch() + time).as_millis() as i64)),
        };
        let (token, record) = self.file.create(grant, now).expect("a token");
        let token = token.reveal().to_owned();
        self.until_status(&token, |status| status != 401).await;
        (token, record.id)
    }

    /// Waits until the server answers a request with this token as expected.
    pub(super) async fn until_status(&self, token: &str, is_expected: impl Fn(u16) -> bool) {
        let api = with_token(&self.server, token);
        for _ in 0..200 {
            let status = api.get("/sessions").await.expect("an answer").status;
            if is_expected(status) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the server does not take the change over");
    }

    pub(super) async fn caller(&self, principal: &str) -> ApiClient {
        let (token, _) = self.token(principal, &[Scope::Own]).await;
        with_token(&self.server, &token)
    }
}

/// A server that accepts the tokens of an issuer.
pub(super) struct JwtServer {
    pub(super) server: TestServer,
    pub(super) issuer: TestIssuer,
    pub(super) key: SigningKey,
}

impl JwtServer {
    pub(super) async fn start(options: ServerOptions) -> Self {
        let key = SigningKey::es256("first");
        let issuer = TestIssuer::start(&[&key]).await;
        let server = TestServer::start(jwt_options(options, &issuer.url())).await;
        Self {
            server,
            issuer,
            key,
        }
    }

    pub(super) fn caller(&self, tenant: &str, principal: &str) -> ApiClient {
        with_token(&self.server, &self.key.sign(&claims(tenant, principal)))
    }
}

/// The settings of a server whose issuer has its keys at `location`.
pub(super) fn jwt_options(options: ServerOptions, location: &str) -> ServerOptions {
    options
        .set("auth", "mode", "jwt")
        .set("auth", "jwt_issuer", ISSUER)
        .set("auth", "jwt_audience", AUDIENCE)
        .set("auth", "jwt_jwks", location)
        .set("auth", "jwt_leeway_ms", 1000)
}

/// The claims of a valid token.
pub(super) fn claims(tenant: &str, principal: &str) -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "exp": seconds_from_now(600),
        "tenant_id": tenant, "sub": principal})
}

/// A claim changed.
pub(super) fn with_claim(mut claims: Value, name: &str, value: impl Into<Value>) -> Value {
    claims[name] = value.into();
    claims
}

pub(super) fn seconds_from_now(seconds: i64) -> i64 {
    since_epoch().as_secs() as i64 + seconds
}

#[allow(
    clippy::disallowed_methods,
    reason = "the server compares the times of tokens with its wall clock"
)]
fn since_epoch() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a time after 1970")
}
