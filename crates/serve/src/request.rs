//! The parts of a request, each parsed strictly: trace, language, identity, shares, path, query, body,
//! and the submit of a turn. A refusal names what is wrong.

pub mod trace;
pub(crate) mod locale;
pub mod identity;
pub mod shares;
pub mod path;
pub mod query;
pub mod body;
pub(crate) mod submit;

pub use body::JsonBody;
pub use identity::{
    AdminCaller, Administrator, AttachUse, Collector, Identity, OwnCaller, ReadingCaller,
    ReviewingCaller,
};
pub use path::{ApprovalPath, MessagePath, SessionPath, TurnPath};
pub use query::{ListPage, QueryParams};
pub use trace::RequestTrace;
