//! The only way from tools to data services.
//!
//! ```text
//! tool ── params ──▶ request ──▶ transport ──▶ response ── judge ──▶ ServiceData │ ServiceFailure
//!   ╰ waits            ╰────── a separate task, at most 10 s ──────╯
//! ```
//! A request that a service has received is never cut off: when a tool is dropped, its task goes on
//! and its result is dropped (S1-110, S1-111).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;
use turnwire_dial::Dialer;
use turnwire_event::Owner;
use turnwire_fair::{FairLimits, FairSlots};
use turnwire_pack::{AgentDefinition, DataService, Enricher, Pack};

use crate::data_service::envelope::EnvelopeVerifier;
use crate::data_service::metrics;
use crate::data_service::registry::{ConnectorError, EnricherRegistry, EnricherType};
use crate::data_service::request::request_body;
use crate::data_service::service_span::ServiceTrace;
use crate::data_service::transport::{
    CALL_MAX, ServiceCredentials, ServiceRequest, ServiceTransport, rest_transport,
};
use crate::data_service::verdict::{ServiceData, ServiceFailure, judge};
use crate::secrets::Secrets;
use crate::tool::{LiveTask, ToolContext};

/// The default limits of concurrent calls, including those of dropped tools: many cancelled turns
/// must not become many requests.
const CALL_LIMITS: FairLimits = FairLimits {
    total: 256,
    per_owner: 64,
    waiting: 1_024,
    waiting_per_owner: 128,
};

/// The [`ServiceTransport`] to a service behind the MCP server of a name, or why there is none.
pub type McpServiceLookup<'a> =
    dyn Fn(&str, &DataService) -> Result<Arc<ServiceTransport>, String> + 'a;

/// The [`ServiceCredentials`] of the service of a name, or why there are none.
pub type CredentialLookup<'a> =
    dyn Fn(&str, &DataService) -> Result<ServiceCredentials, String> + 'a;

/// The data services of a [`Pack`].
pub struct Connector {
    pub(crate) registry: EnricherRegistry,
    /// By the name of the service.
    transports: HashMap<String, Arc<ServiceTransport>>,
    verifier: Arc<dyn EnvelopeVerifier>,
    /// The vertical of each sub-agent, a label of metrics.
    verticals: HashMap<String, String>,
    slots: Arc<FairSlots<Owner>>,
    /// The keys of this process, which no payload may contain.
    keys: Secrets,
}

impl Connector {
    /// The services of `pack`, reached through `dialer` with their `credentials`, or through
    /// `behind_server` where a service is behind an MCP server. `verifier` checks every envelope.
    pub fn new(
        pack: &Pack,
        dialer: Arc<Dialer>,
        credentials: &CredentialLookup<'_>,
        behind_server: &McpServiceLookup<'_>,
        verifier: Arc<dyn EnvelopeVerifier>,
    ) -> Result<Self, ConnectorError> {
        let transport = |name: &str, service: &DataService| match &service.mcp {
            None => rest_transport(service, &dialer, credentials(name, service)?),
            Some(server) => behind_server(server, service),
        };
        let (services, enrichers) = (&pack.services, &pack.enrichers);
        let mut connector = Self::with_transports(services, enrichers, verifier, transport)?;
        let vertical = |agent: &AgentDefinition| Some((agent.id.clone(), agent.vertical.clone()?));
        connector.verticals = pack.agents.iter().filter_map(vertical).collect();
        Ok(connector)
    }

    /// Limits the concurrent calls: in all, per owner, and waiting.
    #[must_use]
    pub fn with_call_limits(self, limits: FairLimits) -> Self {
        let slots = FairSlots::new(limits);
        Self { slots, ..self }
    }

    /// Removes `keys` from all payloads.
    #[must_use]
    pub fn hiding(self, keys: Secrets) -> Self {
        Self { keys, ..self }
    }

    /// Services over any [`ServiceTransport`], without verticals.
    pub(crate) fn with_transports(
        services: &BTreeMap<String, DataService>,
        enrichers: &[Enricher],
        verifier: Arc<dyn EnvelopeVerifier>,
        transport: impl Fn(&str, &DataService) -> Result<Arc<ServiceTransport>, String>,
    ) -> Result<Self, ConnectorError> {
        let transports = services.iter().map(|(name, service)| {
            let service_error = |reason| ConnectorError::Service {
                service: name.clone(),
                reason,
            };
            let transport = transport(name, service).map_err(service_error)?;
            Ok((name.clone(), transport))
        });
        let transports = transports.collect::<Result<HashMap<_, _>, _>>()?;
        let has_service = |enricher: &&Enricher| transports.contains_key(&enricher.service);
        if let Some(enricher) = enrichers.iter().find(|enricher| !has_service(enricher)) {
            let reason = "there is no such service";
            return Err(ConnectorError::enricher(enricher, reason));
        }
        metrics::register();
        Ok(Self {
            registry: EnricherRegistry::new(enrichers)?,
            transports,
            verifier,
            verticals: HashMap::new(),
            slots: FairSlots::new(CALL_LIMITS),
            keys: Secrets::default(),
        })
    }

    /// Asks `enricher` for `params` on behalf of the turn's owner and waits at most `wait`.
    pub(crate) async fn call(
        &self,
        context: &Arc<ToolContext>,
        enricher: &Arc<EnricherType>,
        params: &Map<String, Value>,
        wait: Duration,
        trace: ServiceTrace,
    ) -> Result<ServiceData, ServiceFailure> {
        let deadline = Instant::now() + wait.min(CALL_MAX);
        let result = timeout_at(deadline, self.send(context, enricher, params, trace)).await;
        let result = result.unwrap_or(Err(ServiceFailure::Timeout));
        if let Err(failure) = result {
            let agent = context.agent.as_ref();
            let vertical = agent.and_then(|agent| self.verticals.get(agent));
            let vertical = vertical.map_or("", String::as_str);
            metrics::count_failed_call(failure.reason(), vertical, enricher, context);
        }
        result
    }

    async fn send(
        &self,
        context: &Arc<ToolContext>,
        enricher: &Arc<EnricherType>,
        params: &Map<String, Value>,
        trace: ServiceTrace,
    ) -> Result<ServiceData, ServiceFailure> {
        let transport = self.transports.get(&enricher.def.service);
        let transport = transport.ok_or(ServiceFailure::Internal)?;
        let body = request_body(context, enricher, params, &trace.ids);
        // Nothing has been sent yet: dropping the future here drops the request.
        let slot = self.slots.acquire(&context.owner).await;
        let slot = slot.map_err(|_| ServiceFailure::Timeout)?;
        let sending = transport(ServiceRequest {
            owner: context.owner.clone(),
            body,
            trace: trace.headers,
        });
        let (context, enricher) = (Arc::clone(context), Arc::clone(enricher));
        let (verifier, keys) = (Arc::clone(&self.verifier), self.keys.clone());
        let fields = trace.fields;
        let span = span(&enricher);
        let live_task = LiveTask::begin();
        let task = async move {
            let _guards = (slot, live_task);
            let result = match timeout_at(Instant::now() + CALL_MAX, sending).await {
                Err(_) => Err(ServiceFailure::Timeout),
                Ok(Err(error)) => Err(error.into()),
                Ok(Ok(response)) => {
                    let span = (&tracing::Span::current(), &fields);
                    let principal = &context.owner.principal;
                    let data = judge(&response, &enricher, principal, &*verifier, span);
                    data.map(|data| data.without(&keys))
                }
            };
            if let Err(failure) = result {
                metrics::record_failure(failure, &enricher, &context);
            }
            result
        };
        // Not aborted when this future is dropped: the service finishes the request.
        let task = tokio::spawn(task.instrument(span).in_current_span());
        task.await.unwrap_or_else(|_| {
            tracing::error!("task of a data service call panicked");
            Err(ServiceFailure::Internal)
        })
    }
}

fn span(enricher: &EnricherType) -> tracing::Span {
    tracing::debug_span!(
        "ccs.call",
        enricher_id = %enricher.def.enricher_id,
        domain_type = %enricher.def.domain_type,
        cached = tracing::field::Empty,
        cacheable = tracing::field::Empty,
        ttl = tracing::field::Empty,
        cache_key = tracing::field::Empty,
        total_ms = tracing::field::Empty,
    )
}
