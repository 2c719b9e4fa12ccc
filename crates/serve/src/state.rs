//! What handlers are given: the sessions, the settings, the metrics, the streams. Cheap to clone.

use std::sync::Arc;

use turnwire_session::Sessions;

use turnwire_event::Owner;
use turnwire_wire::pc3::Version;

use crate::config::Config;
use crate::host::Host;
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
    /// What is known of the pack; none where one agent runs without a pack.
    pub host: Option<Arc<Host>>,
}

/// The flag that gives a cohort the older chat wire (D-09).
const WIRE_V04: &str = "ai_assistant_wire_v04";

impl AppState {
    /// The version of the chat wire for turns of `owner` whose request names none.
    pub(crate) fn wire_version(&self, owner: &Owner) -> Version {
        let flagged = |host: &Arc<Host>| host.cohort(owner).has(WIRE_V04);
        if self.host.as_ref().is_some_and(flagged) {
            Version::V04
        } else {
            self.config.wire.version
        }
    }
}
