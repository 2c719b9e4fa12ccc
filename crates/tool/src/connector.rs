//! The connector: the one way from tools to data services (CCS).
//!
//! ```text
//! tool ── params ──▶ request ──▶ transport ──▶ answer ── judge ──▶ payload │ lapse
//!   ╰ waits            ╰────── a task of its own, at most 10 s ──────╯
//! ```
//! A request that a service has is never cut: a tool that is dropped leaves its task behind,
//! whose result nobody sees (S1-110, S1-111). Nothing of an envelope leaves but its payload.

mod typing;
mod envelope;
mod request;
mod transport;
mod verdict;
mod count;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;
use turnwire_dial::Dialer;
use turnwire_pack::{AgentDefinition, DataService, Enricher, Pack};

use crate::live::Live;
use crate::scene::Scene;

use typing::Typing;
use verdict::judge;

pub use envelope::{
    Claim, Envelope, Garbled, Mismatch, NoVerify, Refused, Status, Verified, Verify,
};
pub use request::{EnricherRequest, TraceFields};
pub use transport::Transport;
pub use typing::BadConnector;

pub(crate) use request::params;
#[cfg(test)]
pub(crate) use transport::Rest;
pub(crate) use transport::{BYTES_MAX, CALL_MAX};
pub(crate) use typing::{Typed, id_in};
pub(crate) use verdict::{Given, Lapse};

/// Calls at once, those that nobody waits for any more among them: a crowd of cancelled turns
/// must not become a crowd of requests.
const CALLS_MAX: usize = 256;

/// The way to a service that is behind the tool server of that name, or why there is none.
pub type Behind<'a> = dyn Fn(&str, &DataService) -> Result<Arc<dyn Transport>, String> + 'a;

/// The way to all services of a pack.
pub struct Connector {
    typing: Typing,
    /// By the name of the service.
    transports: HashMap<String, Arc<dyn Transport>>,
    verify: Arc<dyn Verify>,
    /// The vertical of each sub-agent, for counters.
    verticals: HashMap<String, String>,
    slots: Arc<Semaphore>,
}

impl Connector {
    /// The services of `pack`, reached through `dialer`, or through `behind` where a service is
    /// behind a tool server; their envelopes believed if `verify` does.
    pub fn new(
        pack: &Pack,
        dialer: Arc<Dialer>,
        behind: &Behind<'_>,
        verify: Arc<dyn Verify>,
    ) -> Result<Self, BadConnector> {
        let mut connector = Self::over(
            &pack.services,
            &pack.enrichers,
            verify,
            |name, service| match &service.mcp {
                None => Ok(Arc::new(transport::Rest::new(name, service, &dialer)?)),
                Some(server) => behind(server, service).map_err(|why| BadConnector::Behind {
                    service: name.to_owned(),
                    why,
                }),
            },
        )?;
        let vertical = |agent: &AgentDefinition| Some((agent.id.clone(), agent.vertical.clone()?));
        connector.verticals = pack.agents.iter().filter_map(vertical).collect();
        Ok(connector)
    }

    /// The same over any transport, without anything but services.
    pub(crate) fn over(
        services: &BTreeMap<String, DataService>,
        enrichers: &[Enricher],
        verify: Arc<dyn Verify>,
        mut transport: impl FnMut(&str, &DataService) -> Result<Arc<dyn Transport>, BadConnector>,
    ) -> Result<Self, BadConnector> {
        let transports = services
            .iter()
            .map(|(name, service)| Ok((name.clone(), transport(name, service)?)))
            .collect::<Result<HashMap<_, _>, _>>()?;
        if let Some(lost) = enrichers
            .iter()
            .find(|enricher| !transports.contains_key(&enricher.service))
        {
            return Err(BadConnector::Service(lost.enricher_id.clone()));
        }
        count::prepare();
        Ok(Self {
            typing: Typing::new(enrichers)?,
            transports,
            verify,
            verticals: HashMap::new(),
            slots: Arc::new(Semaphore::new(CALLS_MAX)),
        })
    }

    /// What a pair means, if it is registered.
    pub(crate) fn typed(&self, domain_type: &str, enricher_id: &str) -> Option<&Arc<Typed>> {
        self.typing.get(domain_type, enricher_id)
    }

    /// Every enricher of a domain type.
    pub(crate) fn of_domain(&self, domain_type: &str) -> Vec<Arc<Typed>> {
        self.typing.of_domain(domain_type)
    }

    /// Asks `typed` for `params` on behalf of the turn's owner and waits at most `wait`.
    pub(crate) async fn call(
        &self,
        scene: &Arc<Scene>,
        typed: &Arc<Typed>,
        params: &Map<String, Value>,
        wait: Duration,
    ) -> Result<Given, Lapse> {
        let until = Instant::now() + wait.min(CALL_MAX);
        let given = match timeout_at(until, self.ask(scene, typed, params)).await {
            Ok(given) => given,
            Err(_) => Err(Lapse::Timeout),
        };
        if let Err(lapse) = given {
            let agent = scene.agent.as_ref();
            let vertical = agent.and_then(|agent| self.verticals.get(agent));
            let vertical = vertical.map_or("", String::as_str);
            count::failed(lapse.reason(), vertical, typed, scene);
        }
        given
    }

    async fn ask(
        &self,
        scene: &Arc<Scene>,
        typed: &Arc<Typed>,
        params: &Map<String, Value>,
    ) -> Result<Given, Lapse> {
        let Some(transport) = self.transports.get(&typed.service) else {
            return Err(Lapse::Broken);
        };
        let request = EnricherRequest::new(scene, typed, params).bytes();
        // While it waits here nothing has been sent, and dropping it drops the request.
        let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
            return Err(Lapse::Broken);
        };
        let sending = transport.send(request);
        let (scene, typed) = (Arc::clone(scene), Arc::clone(typed));
        let verify = Arc::clone(&self.verify);
        let span = span(&typed);
        let live = Live::begin();
        let task = async move {
            let _held = (slot, live);
            let given = match timeout_at(Instant::now() + CALL_MAX, sending).await {
                Err(_) => Err(Lapse::Timeout),
                Ok(Err(error)) => Err(error.into()),
                Ok(Ok(answer)) => {
                    let span = tracing::Span::current();
                    judge(&answer, &typed, &scene.owner.principal, &*verify, &span)
                }
            };
            if let Err(lapse) = given {
                count::answered(lapse, &typed, &scene);
            }
            given
        };
        // Not aborted when this future is dropped: the service finishes what it began.
        let task = tokio::spawn(task.instrument(span));
        task.await.unwrap_or_else(|_| {
            tracing::error!("a call to a data service broke");
            Err(Lapse::Broken)
        })
    }
}

fn span(typed: &Typed) -> tracing::Span {
    tracing::debug_span!(
        "ccs.call",
        enricher_id = %typed.enricher_id,
        domain_type = %typed.domain_type,
        cached = tracing::field::Empty,
        cacheable = tracing::field::Empty,
        ttl = tracing::field::Empty,
        cache_key = tracing::field::Empty,
        total_ms = tracing::field::Empty,
    )
}
