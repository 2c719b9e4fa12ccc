//! Who may call this server: hosts, origins and proxies, the pages of other sites (CORS), callers and
//! how long they are who they are.

pub mod cors;
pub mod forwarded;
pub mod guard;
pub mod attach_tokens;
pub mod callers;
pub mod live_identity;
