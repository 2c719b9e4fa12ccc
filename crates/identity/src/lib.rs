//! Who sends a request: API tokens of a file, or JSON Web Tokens of an issuer, become a [`Caller`]
//! with an owner, scopes and a lease.
//!
//! ```text
//! bearer token ─▶ Authenticator ─┬─ TokenFile: the hash of the token ──────────▶ Caller
//!                                └─ JwtRules: a key of KeySource has signed it ─▶
//! ```
//! Nothing here knows HTTP requests, sessions or connections. A connection keeps the [`Lease`] of its
//! caller and asks [`Authenticator::state_of`] whether it still holds.

mod scope;
mod token;
mod token_file;
mod caller;
mod refusal;
mod ring_verifier;
mod key_set;
mod claims;
mod jwt;
mod verified;
mod key_source;
mod authenticator;

pub use authenticator::{Authenticator, LoadError};
pub use caller::{Caller, Credential, Lease, LeaseState};
pub use claims::ClaimNames;
pub use jwt::JwtRules;
pub use key_set::KeySetError;
pub use key_source::{KeyLocation, KeySourceError};
pub use refusal::Refusal;
pub use scope::{Scope, ScopeSet, UnknownScope};
pub use token::{NewToken, TokenHash};
pub use token_file::{
    FileStamp, TokenFile, TokenFileError, TokenGrant, TokenRecord, TokenTable, file_stamp,
};
