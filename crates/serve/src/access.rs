//! Who may call this server: headers that may occur once, hosts, origins and proxies, the pages of other sites (CORS), callers and
//! how long they are who they are.

pub(crate) mod header;
pub mod cors;
pub mod forwarded;
pub mod guard;
pub mod attach_tokens;
pub mod callers;
pub mod live_identity;
