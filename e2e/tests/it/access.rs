//! Who may call the server: tokens, tenants, scopes, attach tokens, identities that end.

mod fixture;
mod jobs;
mod jwt;
mod live;
mod matrix;
mod attach;
mod names;
mod quotas;
mod tokens;
mod page;
