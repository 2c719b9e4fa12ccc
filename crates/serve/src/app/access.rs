//! Puts together who may call the server, and keeps it up to date.

use std::sync::Arc;
use std::time::Duration;

use turnwire_dial::{AllowRule, DialError, Dialer, DialerOptions};
use turnwire_event::Clock;
use turnwire_identity::{Authenticator, ClaimNames, JwtRules, KeyLocation, LoadError, TokenFile};
use turnwire_session::SystemClock;

use crate::access::attach_tokens::AttachTokens;
use crate::access::callers::Callers;
use crate::access::cors::CorsPolicy;
use crate::access::forwarded::TrustedProxies;
use crate::access::guard::Guard;
use crate::config::auth::{Auth, AuthMode};
use crate::config::{ServerConfig, owner_share};
use crate::host::reload::ReloadRequests;
use crate::middleware::AccessRules;
use crate::request::shares::RequestShares;
use crate::transport::Streams;

/// Why callers cannot be authenticated, in words for the person who started the server.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The tokens or keys cannot be loaded.
    #[error("auth: {0}")]
    Credentials(#[from] LoadError),
    /// Keys cannot be downloaded at all.
    #[error(transparent)]
    Dial(#[from] DialError),
}

/// The [`Authenticator`] of the mode that is set.
pub(super) async fn authenticator(config: &ServerConfig) -> Result<Authenticator, AccessError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let auth = &config.auth;
    match (auth.mode, &auth.jwt_jwks) {
        (AuthMode::None, _) | (AuthMode::Jwt, None) => Ok(Authenticator::open(clock)),
        (AuthMode::Tokens, _) => {
            let file = TokenFile::new(config.tokens_file());
            Ok(Authenticator::with_tokens(file, clock)?)
        }
        (AuthMode::Jwt, Some(location)) => {
            // The operator named this host; no other becomes reachable.
            let host = match location {
                KeyLocation::Url(url) => AllowRule::for_host_of(url),
                KeyLocation::File(_) => None,
            };
            let dialer = Dialer::new(DialerOptions {
                allow: host.into_iter().collect(),
            })?;
            let location = location.clone();
            Ok(Authenticator::with_issuer(rules(auth), location, dialer, clock).await?)
        }
    }
}

fn rules(auth: &Auth) -> JwtRules {
    JwtRules {
        issuer: auth.jwt_issuer.clone().unwrap_or_default(),
        audiences: auth.jwt_audience.clone(),
        leeway_ms: i64::try_from(auth.jwt_leeway_ms).unwrap_or(0),
        claims: ClaimNames {
            principal: auth.jwt_principal_claim.clone(),
            tenant: auth.jwt_tenant_claim.clone(),
            scopes: auth.jwt_scopes_claim.clone(),
            default_tenant: auth.jwt_default_tenant,
            base_scopes: auth.jwt_base_scopes,
        },
    }
}

/// The tokens with which streams are opened.
pub(super) fn attach_tokens(config: &ServerConfig) -> AttachTokens {
    let stream = &config.stream;
    let share = owner_share(stream.tokens_max_per_owner, stream.tokens_max);
    AttachTokens::new(
        Duration::from_millis(stream.token_ttl_ms),
        stream.tokens_max,
        share,
    )
}

/// What decides whether a request reaches its route.
pub(super) fn request_rules(config: &ServerConfig, streams: &Streams) -> AccessRules {
    let authenticator = streams.identities.authenticator().clone();
    AccessRules {
        guard: Guard {
            cors: CorsPolicy::new(&config.http.cors_origins),
            public: config.server.public_url.clone(),
            hosts: config.server.hosts.clone(),
            is_authenticated: !authenticator.is_open(),
        },
        proxies: TrustedProxies::new(&config.server.trusted_proxies),
        callers: Callers::new(authenticator, streams.attach_tokens.clone()),
        shares: RequestShares::new(
            streams.connections.clone(),
            streams.transfers.clone(),
            &config.http,
        ),
    }
}

/// Loads credentials again when they may have changed, and at each of `requests`; never returns.
pub(super) async fn follow_credentials(
    config: Arc<ServerConfig>,
    streams: Arc<Streams>,
    mut requests: ReloadRequests,
) {
    let authenticator = streams.identities.authenticator();
    let auth = &config.auth;
    let every = match (auth.mode, &auth.jwt_jwks) {
        (AuthMode::None, _) => return std::future::pending().await,
        (AuthMode::Jwt, Some(KeyLocation::Url(_))) => auth.jwt_refresh_ms,
        (AuthMode::Tokens | AuthMode::Jwt, _) => auth.reload_ms,
    };
    loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(every)) => {}
            () = requests.next() => {}
        }
        // Logged and counted where it happens.
        let _ = authenticator.reload().await;
    }
}

/// Removes attach tokens that nobody used; never returns.
pub(super) async fn remove_expired_tokens(streams: Arc<Streams>) {
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        streams.attach_tokens.remove_expired();
    }
}
