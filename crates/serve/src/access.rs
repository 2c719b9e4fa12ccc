//! Who may call this server: hosts and origins, and the pages of other sites (CORS).

pub mod cors;
pub mod guard;
