//! The request to a data service. Its principal is the owner of the turn; nothing that a
//! model wrote can change it (S2-047, S2-048).

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::data_service::registry::EnricherType;
use crate::tool::ToolContext;

/// The key of an input that is never sent as a parameter.
const PRINCIPAL: &str = "principal";

/// The request to `enricher` on behalf of the turn's owner, with its fields in the order of the
/// wire. `trace` is empty if the turn has no span.
pub(crate) fn request_body(
    context: &ToolContext,
    enricher: &EnricherType,
    params: &Map<String, Value>,
    trace: &Value,
) -> Bytes {
    let request = json!({
        "principal": context.owner.principal.as_str(),
        "enricher_id": enricher.def.enricher_id,
        "domain_type": enricher.def.domain_type,
        "version": enricher.def.version,
        "params": params,
        "trace": trace,
    });
    request.to_string().into()
}

/// The input without a principal.
pub(crate) fn without_principal(mut input: Value) -> Value {
    if let Value::Object(params) = &mut input {
        params.shift_remove(PRINCIPAL);
    }
    input
}
