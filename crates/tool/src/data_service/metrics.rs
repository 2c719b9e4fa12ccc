//! Metrics and log lines of calls to data services. They contain no payload, no principal and no
//! address, so everyone with access to the logs may read them.

use turnwire_event::code::Reason;
use turnwire_event::metric;

use crate::data_service::registry::EnricherType;
use crate::data_service::verdict::ServiceFailure;
use crate::tool::ToolContext;

/// The label `consumer` in the metrics of the envelope contract: the receiver of the envelopes.
const CONSUMER: &str = "consumer-agent";

/// Registers the counters of incidents at 0. An alert on their increase does not see the first
/// incident if a counter starts at 1 (S2-052).
pub(crate) fn register() {
    metrics::counter!(metric::PS6_PRINCIPAL_MISMATCH_TOTAL, "consumer" => CONSUMER).increment(0);
    metrics::counter!(metric::PS6_PRINCIPAL_REFUSED_TOTAL, "consumer" => CONSUMER).increment(0);
}

/// Logs why a call returned no data, and counts breaches of the envelope contract. Called when the
/// call ends, even if its tool no longer waits.
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
                trace_id = context.trace.as_ref().map(|trace| trace.trace_id.as_str()),
                "response of a data service dropped: {mismatch}"
            );
        }
        // The service holds that the server asks on behalf of somebody it may not ask for.
        ServiceFailure::PrincipalRefused => {
            metrics::counter!(metric::PS6_PRINCIPAL_REFUSED_TOTAL, "consumer" => CONSUMER)
                .increment(1);
            tracing::warn!(
                target: "security",
                enricher_id,
                service = %enricher.def.service,
                session_id = %context.session_id,
                turn_id = %context.turn_id,
                trace_id = context.trace.as_ref().map(|trace| trace.trace_id.as_str()),
                "a data service refused the principal of a request"
            );
        }
        ServiceFailure::Version => {
            count_by_enricher(metric::PS6_VERSION_MISMATCH_TOTAL, enricher_id);
            tracing::warn!(
                enricher_id,
                "response of a data service has an unsupported major version"
            );
        }
        ServiceFailure::UnknownReason(_) => {
            count_by_enricher(metric::PS6_REASON_UNKNOWN_TOTAL, enricher_id);
            tracing::warn!(
                enricher_id,
                "response of a data service has a reason that is not in the contract"
            );
        }
        failure => {
            let service = &enricher.def.service;
            tracing::warn!(enricher_id, %service, ?failure, "data service returned no data");
        }
    }
}

fn count_by_enricher(counter_name: &'static str, enricher_id: &str) {
    metrics::counter!(counter_name, "enricher_id" => enricher_id.to_owned(), "consumer" => CONSUMER)
        .increment(1);
}

/// Counts a call that returned no data, as its caller sees it: a caller that stops waiting counts a
/// timeout. The labels are those of all stream metrics, the enricher and the reason (S1-145).
pub(crate) fn count_failed_call(
    reason: Reason,
    vertical: &str,
    enricher: &EnricherType,
    context: &ToolContext,
) {
    let agent = context.agent.as_deref().unwrap_or_default();
    let mut labels = context.dimensions.labels_of(vertical, agent).to_vec();
    labels.push(("enricher_id", enricher.def.enricher_id.clone()));
    labels.push(("reason", reason.label().to_owned()));
    metrics::counter!(metric::STREAM_CCS_ERROR_TOTAL, &labels).increment(1);
}
