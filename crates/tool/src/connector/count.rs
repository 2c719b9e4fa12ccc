//! What is counted and written down of calls to data services. No payload, no principal but the
//! turn's own, no address: what stands here may be read by everyone who reads logs.

use metrics::Label;
use turnwire_event::code::Reason;
use turnwire_event::metric;

use crate::connector::typing::Typed;
use crate::connector::verdict::Lapse;
use crate::scene::Scene;

/// This side of the envelope contract, as its dashboards name it.
const CONSUMER: &str = "consumer-agent";

/// Makes the counter that alarms hang on be there from the start: the first step of a counter
/// that was not there before is no increase to whoever watches (S2-052).
pub(crate) fn prepare() {
    metrics::counter!(metric::PS6_PRINCIPAL_MISMATCH_TOTAL, "consumer" => CONSUMER).increment(0);
}

/// What an answer told of the service itself; counted also when nobody waits for it any more.
pub(crate) fn answered(lapse: Lapse, typed: &Typed, scene: &Scene) {
    let enricher_id = typed.enricher_id.as_str();
    match lapse {
        Lapse::Mismatch(kind) => {
            metrics::counter!(metric::PS6_PRINCIPAL_MISMATCH_TOTAL, "consumer" => CONSUMER)
                .increment(1);
            tracing::error!(
                target: "security",
                enricher_id,
                service = %typed.service,
                session_id = %scene.session_id,
                turn_id = %scene.turn_id,
                "an answer was thrown away: {kind}"
            );
        }
        Lapse::Version => {
            count(metric::PS6_VERSION_MISMATCH_TOTAL, enricher_id);
            tracing::warn!(enricher_id, "an answer is of another major version");
        }
        Lapse::UnknownReason => {
            count(metric::PS6_REASON_UNKNOWN_TOTAL, enricher_id);
            tracing::warn!(
                enricher_id,
                "an answer has a reason that is not in the contract"
            );
        }
        other => tracing::warn!(enricher_id, service = %typed.service, why = ?other, "no data"),
    }
}

fn count(name: &'static str, enricher_id: &str) {
    metrics::counter!(name, "enricher_id" => enricher_id.to_owned(), "consumer" => CONSUMER)
        .increment(1);
}

/// A call that gave its caller nothing, by the pair that others count by too (S1-145).
pub(crate) fn failed(reason: Reason, vertical: &str, typed: &Typed, scene: &Scene) {
    let mut dimensions = metric::dimensions(&scene.definition);
    for (name, value) in &mut dimensions {
        match *name {
            "vertical" => vertical.clone_into(value),
            "sub_agent_id" => scene.agent.as_deref().unwrap_or_default().clone_into(value),
            _ => {}
        }
    }
    let mut labels: Vec<Label> = dimensions
        .into_iter()
        .map(|(name, value)| Label::new(name, value))
        .collect();
    labels.push(Label::new("enricher_id", typed.enricher_id.clone()));
    labels.push(Label::new("reason", word(reason)));
    metrics::counter!(metric::STREAM_CCS_ERROR_TOTAL, labels).increment(1);
}

/// The word of a reason, as wires write it.
fn word(reason: Reason) -> String {
    let word = serde_json::to_value(reason).ok();
    word.and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}
