//! The state of the routes: one handle for each kind of access to sessions, the settings, the
//! metrics and the streams. A handler takes only the parts that it needs, through [`FromRef`].

use std::sync::Arc;

use axum::extract::FromRef;
use turnwire_event::Owner;
use turnwire_session::{
    LiveSessions, ServiceStatus, SessionReader, SessionService, SessionWriter, TurnApprovals,
    TurnCanceller, TurnSubmitter,
};
use turnwire_wire::pc3::WireVersion;

use crate::config::ServerConfig;
use crate::host::PackHost;
use crate::metrics::MetricsHandle;
use crate::transport::Streams;

/// The state of all routes. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    reader: SessionReader,
    writer: SessionWriter,
    live_sessions: LiveSessions,
    submitter: TurnSubmitter,
    canceller: TurnCanceller,
    approvals: TurnApprovals,
    status: ServiceStatus,
    wire_versions: WireVersions,
    metrics: MetricsHandle,
    streams: Arc<Streams>,
    /// The settings in force.
    pub config: Arc<ServerConfig>,
    /// The pack; `None` if one agent runs without a pack.
    pub host: Option<Arc<PackHost>>,
}

impl AppState {
    /// The state over `service`.
    pub fn new(
        service: &SessionService,
        config: Arc<ServerConfig>,
        metrics: MetricsHandle,
        streams: Arc<Streams>,
        host: Option<Arc<PackHost>>,
    ) -> Self {
        Self {
            reader: service.reader(),
            writer: service.writer(),
            live_sessions: service.live_sessions(),
            submitter: service.submitter(),
            canceller: service.canceller(),
            approvals: service.approvals(),
            status: service.status(),
            wire_versions: WireVersions {
                config: config.clone(),
                host: host.clone(),
            },
            metrics,
            streams,
            config,
            host,
        }
    }
}

/// Lets a handler take one part of [`AppState`].
macro_rules! part {
    ($($field:ident: $type:ty),+ $(,)?) => {
        $(impl FromRef<AppState> for $type {
            fn from_ref(state: &AppState) -> Self {
                state.$field.clone()
            }
        })+
    };
}

part! {
    reader: SessionReader,
    writer: SessionWriter,
    live_sessions: LiveSessions,
    submitter: TurnSubmitter,
    canceller: TurnCanceller,
    approvals: TurnApprovals,
    status: ServiceStatus,
    wire_versions: WireVersions,
    metrics: MetricsHandle,
    streams: Arc<Streams>,
    config: Arc<ServerConfig>,
}

/// The flag that gives a cohort the older chat wire (D-09).
const WIRE_V04: &str = "ai_assistant_wire_v04";

/// Chooses the version of the chat wire for turns whose request names none.
#[derive(Clone)]
pub(crate) struct WireVersions {
    config: Arc<ServerConfig>,
    host: Option<Arc<PackHost>>,
}

impl WireVersions {
    /// The version for turns of `owner`: by the flag of the owner's cohort, else by the settings.
    pub(crate) fn for_owner(&self, owner: &Owner) -> WireVersion {
        let flagged = |host: &Arc<PackHost>| host.cohort(owner).has(WIRE_V04);
        if self.host.as_ref().is_some_and(flagged) {
            WireVersion::V04
        } else {
            self.config.wire.version
        }
    }
}
