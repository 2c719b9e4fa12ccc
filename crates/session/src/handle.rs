//! The handles of the session service, one for each kind of access. A caller takes only the handles
//! that it needs; each is cheap to clone.

pub(crate) mod status;
pub(crate) mod live_sessions;
pub(crate) mod reader;
pub(crate) mod writer;
pub(crate) mod submitter;
pub(crate) mod canceller;
pub(crate) mod approvals;
pub(crate) mod service;
