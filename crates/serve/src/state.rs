//! What handlers are given: the sessions, the settings, the metrics, the streams. Cheap to clone.

use std::sync::Arc;

use turnwire_session::Sessions;

use crate::config::Config;
use crate::metrics::Handle;
use crate::transport::Streams;

/// What handlers are given.
#[derive(Clone)]
pub struct AppState {
    /// Every session there is.
    pub sessions: Arc<Sessions>,
    /// The settings in force.
    pub config: Arc<Config>,
    /// What renders `/metrics`.
    pub metrics: Handle,
    /// What all streams share.
    pub streams: Arc<Streams>,
}
