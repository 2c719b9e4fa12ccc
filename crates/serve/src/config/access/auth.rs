//! Who may call the server, and how callers prove who they are.

use std::path::PathBuf;

use turnwire_event::TenantId;
use turnwire_identity::{KeyLocation, ScopeSet};

use crate::config::setting::{
    choice, key_location, non_empty, number, optional_path, optional_tenant, optional_text, scopes,
    section, texts,
};

/// How callers prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// They do not: whoever reaches the server is believed.
    None,
    /// With API tokens that `turnwire token` creates.
    Tokens,
    /// With JSON Web Tokens of an issuer.
    Jwt,
}

const MODES: &[(&str, AuthMode)] = &[
    ("none", AuthMode::None),
    ("tokens", AuthMode::Tokens),
    ("jwt", AuthMode::Jwt),
];

section! {
    /// Who may call the server.
    Auth, "auth" {
        /// How callers prove who they are: `none` believes the headers X-Tenant-Id and
        /// X-Turnwire-Principal, and lets the server listen on loopback only; `tokens` takes the API
        /// tokens of `turnwire token create`; `jwt` takes tokens of an identity provider.
        mode: AuthMode = "none", choice(MODES);
        /// File of API tokens, in which there are only their hashes. Default is `tokens.json` in the
        /// home folder.
        tokens_file: Option<PathBuf> = "", optional_path;
        /// How often the server looks whether the file of tokens or keys has changed; so late a
        /// revoked token is refused. SIGHUP looks at once.
        reload_ms: u64 = "1000", number(100..=3_600_000);
        /// The issuer of JSON Web Tokens, exactly as in their claim `iss`.
        jwt_issuer: Option<String> = "", optional_text;
        /// Audiences, separated by commas. A token must name one of them in its claim `aud`.
        jwt_audience: Vec<String> = "", texts;
        /// The public keys of the issuer, a JSON Web Key Set: the URL of its document, or a file.
        /// `https` only, but for loopback.
        jwt_jwks: Option<KeyLocation> = "", key_location;
        /// How often the keys of a URL are loaded again; a token with an unknown key makes the
        /// server look earlier, at most every 10 s. A key that the issuer has withdrawn is accepted
        /// for so long.
        jwt_refresh_ms: u64 = "300000", number(1_000..=86_400_000);
        /// How far the clocks of issuer and server may be apart.
        jwt_leeway_ms: u64 = "30000", number(0..=600_000);
        /// The claim with the principal. A dot leads into an object.
        jwt_principal_claim: String = "sub", non_empty;
        /// The claim with the tenant, a UUID.
        jwt_tenant_claim: String = "tenant_id", non_empty;
        /// The claim with the scopes: a list, or names separated by spaces, with or without
        /// `turnwire:` before each. Names of other services are ignored.
        jwt_scopes_claim: String = "scope", non_empty;
        /// The tenant of tokens without a tenant claim; without this setting they are refused.
        jwt_default_tenant: Option<TenantId> = "", optional_tenant;
        /// The scopes that every valid token has, beside those in its claim.
        jwt_base_scopes: ScopeSet = "own", scopes;
    }
}
