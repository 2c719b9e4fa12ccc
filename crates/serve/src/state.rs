//! The state of the routes: the sessions, the settings, the metrics and the streams. A handler takes
//! only the parts that it needs, through [`FromRef`].

use std::sync::Arc;

use axum::extract::FromRef;
use turnwire_event::Owner;
use turnwire_pack::WIRE_V04_FLAG;
use turnwire_session::{
    AuditReader, JobController, LiveSessions, ServiceStatus, SessionQuotas, SessionReader,
    SessionService, SessionWriter, TurnApprovals, TurnCanceller, TurnSubmitter,
};
use turnwire_wire::pc3::WireVersion;

use crate::config::ServerConfig;
use crate::host::PackHost;
use crate::listen::ParseSlots;
use crate::metrics::MetricsHandle;
use crate::transport::Streams;

/// The state of all routes. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The sessions; each route takes the handle for its kind of access.
    pub service: SessionService,
    /// The settings in force.
    pub config: Arc<ServerConfig>,
    /// Renders the metrics of this process.
    pub metrics: MetricsHandle,
    /// The state that all connections share: see [`Streams`].
    pub streams: Arc<Streams>,
    /// The threads that parse large bodies.
    pub parse_slots: ParseSlots,
    /// The pack; `None` if one agent runs without a pack.
    pub host: Option<Arc<PackHost>>,
}

/// Lets a handler take one part of [`AppState`].
macro_rules! parts {
    ($($type:ty: $($part:ident).+;)+) => {
        $(impl FromRef<AppState> for $type {
            fn from_ref(state: &AppState) -> Self {
                state.$($part).+()
            }
        })+
    };
}

parts! {
    SessionReader: service.reader;
    SessionQuotas: service.quotas;
    SessionWriter: service.writer;
    LiveSessions: service.live_sessions;
    TurnSubmitter: service.submitter;
    TurnCanceller: service.canceller;
    TurnApprovals: service.approvals;
    JobController: service.jobs;
    AuditReader: service.audit;
    ServiceStatus: service.status;
    MetricsHandle: metrics.clone;
    Arc<Streams>: streams.clone;
    Arc<ServerConfig>: config.clone;
}

impl AppState {
    /// The version of the chat wire for turns of `owner` whose request names none: by the flag of
    /// the owner's cohort, else by the settings.
    pub(crate) fn wire_version(&self, owner: &Owner) -> WireVersion {
        let flagged = |host: &Arc<PackHost>| host.cohort(owner).has(WIRE_V04_FLAG);
        if self.host.as_ref().is_some_and(flagged) {
            WireVersion::V04
        } else {
            self.config.wire.version
        }
    }
}
