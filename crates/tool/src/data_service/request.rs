//! The request to a data service. Its principal is the owner of the turn; nothing that a
//! model wrote can change it (S2-047, S2-048).

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};
use turnwire_event::TraceContext;

use crate::data_service::registry::EnricherType;
use crate::tool::ToolContext;

/// The key of an input that is never sent as a parameter.
const PRINCIPAL: &str = "principal";

/// A request, with its fields in the order of the wire.
#[derive(Debug, Serialize)]
pub(crate) struct EnricherRequest<'a> {
    /// The owner of the turn.
    principal: &'a str,
    /// The enricher that is asked.
    enricher_id: &'a str,
    /// The type of data that it returns.
    domain_type: &'a str,
    /// The envelope version that this side supports.
    version: &'a str,
    /// The parameters that the model wrote.
    params: &'a Map<String, Value>,
    /// The span of the call; empty without one.
    trace: TraceFields<'a>,
}

/// The trace fields of a request.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TraceFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<&'a str>,
}

impl<'a> EnricherRequest<'a> {
    /// A request to `enricher` on behalf of the turn's owner.
    pub(crate) fn new(
        context: &'a ToolContext,
        enricher: &'a EnricherType,
        params: &'a Map<String, Value>,
    ) -> Self {
        let trace = |trace: &'a TraceContext| TraceFields {
            trace_id: Some(&trace.trace_id),
            span_id: Some(&trace.span_id),
        };
        Self {
            principal: context.owner.principal.as_str(),
            enricher_id: &enricher.def.enricher_id,
            domain_type: &enricher.def.domain_type,
            version: &enricher.def.version,
            params,
            trace: context.trace.as_deref().map(trace).unwrap_or_default(),
        }
    }

    /// The request as JSON.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let json = serde_json::to_vec(self);
        json.expect("texts and a JSON object are plain data").into()
    }
}

/// The input without a principal.
pub(crate) fn without_principal(mut input: Value) -> Value {
    if let Value::Object(params) = &mut input {
        params.shift_remove(PRINCIPAL);
    }
    input
}
