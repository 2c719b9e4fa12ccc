//! The handles of the session service, one for each kind of access. A caller takes only the handles
//! that it needs; each is cheap to clone.

/// Defines a handle: a reference to the [`SessionCore`](crate::lifecycle::session_core::SessionCore)
/// that all handles share.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            core: std::sync::Arc<crate::lifecycle::session_core::SessionCore>,
        }

        impl $name {
            pub(super) fn new(core: &std::sync::Arc<crate::lifecycle::session_core::SessionCore>) -> Self {
                Self { core: core.clone() }
            }
        }
    };
}

pub(crate) mod status;
pub(crate) mod live_sessions;
pub(crate) mod quotas;
pub(crate) mod reader;
pub(crate) mod writer;
pub(crate) mod submitter;
pub(crate) mod canceller;
pub(crate) mod approvals;
pub(crate) mod jobs;
pub(crate) mod audit;
pub(crate) mod service;
