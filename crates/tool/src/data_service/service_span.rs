//! The span of one call of a data service: its ids are sent to the service, its times and the cache
//! fields of the envelope go to the trace (S2-043). Nothing of it decides anything.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use turnwire_event::SpanId;
use turnwire_event::port::{EventEmitter, MeasuredSpan, SpanValue};
use turnwire_event::trace::turn_span;

use crate::data_service::envelope_fields::EnvelopeFields;
use crate::data_service::registry::EnricherType;
use crate::data_service::verdict::{ServiceData, ServiceFailure};
use crate::tool::{ToolContext, ToolInvocation};

/// The trace of a request to a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceTrace {
    /// The headers, or the `_meta` of a call over MCP.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The field `trace` of the request.
    pub(crate) ids: Value,
    /// Fields of the envelope for the span; see [`EnvelopeFields`].
    pub(crate) fields: EnvelopeFields,
}

impl ServiceTrace {
    /// The trace of a request that `span` measures; without one, in the span that the events of the
    /// caller name.
    pub(crate) fn new(context: &ToolContext, span: Option<&ServiceSpan>) -> Self {
        let trace = context.trace.as_deref();
        let named = || turn_span(trace, context.turn_id);
        let span_id = span.map_or_else(named, |span| span.span);
        let trace_id = context.trace_id();
        let ids = match span.is_some() || trace.is_some() {
            true => json!({"trace_id": trace_id, "span_id": span_id.to_string()}),
            false => json!({}),
        };
        Self {
            headers: context.propagation.headers(&trace_id, span_id),
            ids,
            fields: span.map_or_else(EnvelopeFields::default, |span| span.fields.clone()),
        }
    }
}

/// Measures a call. Recorded when it is dropped, also with a call that was cancelled.
pub(crate) struct ServiceSpan {
    span: SpanId,
    parent: SpanId,
    emitter: Arc<dyn EventEmitter>,
    enricher: Arc<EnricherType>,
    started: Instant,
    failure: Option<String>,
    fields: EnvelopeFields,
}

impl ServiceSpan {
    /// Begins the span of a call to `enricher`; `None` if the turn has no spans here.
    pub(crate) fn begin(call: &ToolInvocation, enricher: &Arc<EnricherType>) -> Option<Self> {
        let propagation = &call.context.propagation;
        (propagation.is_exporting && propagation.sampled).then(|| Self {
            span: SpanId::of_service_call(call.tool_use_id),
            parent: SpanId::of_tool(call.tool_use_id),
            emitter: Arc::clone(&call.emitter),
            enricher: Arc::clone(enricher),
            started: Instant::now(),
            failure: Some("cancelled".to_owned()),
            fields: EnvelopeFields::wanted(),
        })
    }

    /// Ends the span with the outcome of the call.
    pub(crate) fn end(mut self, result: &Result<ServiceData, ServiceFailure>) {
        let failure = result.as_ref().err();
        self.failure = failure.map(|failure| failure.reason().label().to_owned());
        if let Ok(ServiceData::Partial(_)) = result {
            self.fields
                .put("turnwire.data_service.partial", &Value::Bool(true));
        }
    }
}

impl Drop for ServiceSpan {
    fn drop(&mut self) {
        let def = &self.enricher.def;
        let mut attributes: Vec<(&'static str, SpanValue)> = vec![
            ("turnwire.data_service.name", def.service.as_str().into()),
            ("turnwire.enricher.id", def.enricher_id.as_str().into()),
            (
                "turnwire.enricher.domain_type",
                def.domain_type.as_str().into(),
            ),
        ];
        attributes.append(&mut self.fields.take());
        self.emitter.record_span(MeasuredSpan {
            name: format!("data_service {}", def.enricher_id),
            is_client: true,
            span: self.span,
            parent: self.parent,
            started: self.started,
            ended: Instant::now(),
            failure: self.failure.take(),
            attributes,
        });
    }
}
