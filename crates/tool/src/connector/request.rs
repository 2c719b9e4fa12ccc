//! What a data service is asked. The principal is the turn's owner and nothing a model
//! wrote can change it (S2-047, S2-048).

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};
use turnwire_event::Trace;

use crate::connector::typing::Typed;
use crate::scene::Scene;

/// The one key of an input that never reaches a service as a parameter.
const PRINCIPAL: &str = "principal";

/// A request, in the order of its fields on the wire.
#[derive(Debug, Serialize)]
pub struct EnricherRequest<'a> {
    /// For whom.
    pub principal: &'a str,
    /// Which enricher.
    pub enricher_id: &'a str,
    /// Which type of data.
    pub domain_type: &'a str,
    /// The version of the envelope that is understood.
    pub version: &'a str,
    /// What the model asks for.
    pub params: &'a Map<String, Value>,
    /// The span it belongs to; empty if there is none.
    pub trace: TraceFields<'a>,
}

/// A trace as a service is told it.
#[derive(Debug, Default, Serialize)]
pub struct TraceFields<'a> {
    /// 32 hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<&'a str>,
    /// 16 hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<&'a str>,
}

impl<'a> EnricherRequest<'a> {
    /// The request of `scene` for what `typed` says.
    pub(crate) fn new(scene: &'a Scene, typed: &'a Typed, params: &'a Map<String, Value>) -> Self {
        let trace = |trace: &'a Trace| TraceFields {
            trace_id: Some(&trace.trace_id),
            span_id: Some(&trace.span_id),
        };
        Self {
            principal: scene.owner.principal.as_str(),
            enricher_id: &typed.enricher_id,
            domain_type: &typed.domain_type,
            version: &typed.version,
            params,
            trace: scene.trace.as_deref().map(trace).unwrap_or_default(),
        }
    }

    /// Its JSON.
    pub(crate) fn bytes(&self) -> Bytes {
        let json = serde_json::to_vec(self);
        json.expect("texts and a JSON object are plain data").into()
    }
}

/// The parameters: what the model wrote without a principal. `None` if it is no object.
pub(crate) fn params(input: Value) -> Option<Map<String, Value>> {
    let Value::Object(mut params) = input else {
        return None;
    };
    params.shift_remove(PRINCIPAL);
    Some(params)
}
