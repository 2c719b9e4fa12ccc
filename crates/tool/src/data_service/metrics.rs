//! Metrics and log lines of calls to data services. They contain no payload, no principal and no
//! address: everyone who reads logs may read them.

use turnwire_event::code::Reason;
use turnwire_event::metric;

use crate::data_service::registry::EnricherType;
use crate::data_service::verdict::ServiceFailure;
use crate::tool::ToolContext;

/// The name of this side in the dashboards of the envelope contract.
const CONSUMER: &str = "consumer-agent";

/// Registers the counter that alerts watch. A counter that appears with its first step shows no
/// increase to an alert (S2-052).
pub(crate) fn register() {
    metrics::counter!(metric::PS6_PRINCIPAL_MISMATCH_TOTAL, "consumer" => CONSUMER).increment(0);
}

/// Counts and logs what a response shows about the service, also if its tool was dropped.
pub(crate) fn record_failure(
    failure: ServiceFailure,
    enricher: &EnricherType,
    context: &ToolContext,
) {
    let enricher_id = enricher.def.enricher_id.as_str();
    match failure {
        ServiceFailure::Mismatch(mismatch) => {
            metrics::counter!(metric::PS6_PRINCIPAL_MISMATCH_TOTAL, "consumer" => CONSUMER)
                .increment(1);
            tracing::error!(
                target: "security",
                enricher_id,
                service = %enricher.def.service,
                session_id = %context.session_id,
                turn_id = %context.turn_id,
                "response of a data service dropped: {mismatch}"
            );
        }
        ServiceFailure::Version => {
            count(metric::PS6_VERSION_MISMATCH_TOTAL, enricher_id);
            tracing::warn!(enricher_id, "response has another major version");
        }
        ServiceFailure::UnknownReason => {
            count(metric::PS6_REASON_UNKNOWN_TOTAL, enricher_id);
            tracing::warn!(
                enricher_id,
                "response has a reason that is not in the contract"
            );
        }
        failure => {
            tracing::warn!(enricher_id, service = %enricher.def.service, ?failure, "no data");
        }
    }
}

fn count(name: &'static str, enricher_id: &str) {
    metrics::counter!(name, "enricher_id" => enricher_id.to_owned(), "consumer" => CONSUMER)
        .increment(1);
}

/// Counts a call without a result, by the labels that other services count by too (S1-145).
pub(crate) fn count_failed_call(
    reason: Reason,
    vertical: &str,
    enricher: &EnricherType,
    context: &ToolContext,
) {
    let agent = context.agent.as_deref().unwrap_or_default();
    let dimensions = metric::dimensions_of(&context.definition, vertical, agent);
    let mut labels = dimensions.to_vec();
    labels.push(("enricher_id", enricher.def.enricher_id.clone()));
    labels.push(("reason", code(reason)));
    metrics::counter!(metric::STREAM_CCS_ERROR_TOTAL, &labels).increment(1);
}

/// The code of a reason on the wire.
fn code(reason: Reason) -> String {
    let code = serde_json::to_value(reason).ok();
    code.and_then(|code| code.as_str().map(str::to_owned))
        .unwrap_or_default()
}
