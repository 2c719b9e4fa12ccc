//! The metrics endpoint: one recorder a process, the names of `event::metric`, the documents' dotted
//! name in the help text (D-16).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge};
use bytes::Bytes;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use turnwire_event::Clock;
use turnwire_event::metric::{self, MetricDef};

use crate::error::RequestFault;

/// Upper bounds of histogram buckets in seconds: fine where a commit or a seam should be, coarse
/// where it is late anyway.
const BUCKETS_SECONDS: &[f64] = &[
    0.000_25, 0.000_5, 0.001, 0.002, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 20.0,
];

/// How often samples are folded into buckets: between scrapes they would accumulate.
const UPKEEP: Duration = Duration::from_secs(5);

/// Counters and gauges that exist only together with labels.
const LABELLED: &[&str] = &[
    metric::WS_SUBSCRIBE_ERROR_TOTAL,
    metric::STREAM_EVENTS_EMITTED_TOTAL,
    metric::STREAM_TERMINAL_FRAME_EMITTED_TOTAL,
    metric::STREAM_ERROR_FRAME_EMITTED_TOTAL,
    metric::STREAM_SSE_FRAME_DROPPED_TOTAL,
    metric::STREAM_FRAME_OVERSIZE_TOTAL,
    metric::STREAM_CANCELLATION_TOTAL,
    metric::LLM_CALLS_TOTAL,
    metric::LLM_TOKENS_TOTAL,
    metric::LLM_COST_USD_TOTAL,
    metric::TURN_COMPLETED_TOTAL,
    metric::TURN_CANCELLED_TOTAL,
    metric::HTTP_REQUESTS_TOTAL,
    metric::STREAM_RENDERING_POLICY_APPLIED_TOTAL,
    metric::STREAM_STATUS_EVENT_EMITTED_TOTAL,
    metric::STREAM_CCS_ERROR_TOTAL,
    metric::DISPATCH_AXIS_FAILURE_TOTAL,
    metric::RELOADS_TOTAL,
    metric::PACK_RELOADS_TOTAL,
    metric::STREAM_REGISTRY_SIZE,
    metric::TURN_UNWATCHED_TOTAL,
    metric::PS6_PRINCIPAL_MISMATCH_TOTAL,
    metric::PS6_PRINCIPAL_REFUSED_TOTAL,
    metric::PS6_VERSION_MISMATCH_TOTAL,
    metric::PS6_REASON_UNKNOWN_TOTAL,
    metric::LIMIT_REFUSED_TOTAL,
    metric::RELAY_FAULTS_TOTAL,
    metric::MCP_SERVER_UP,
    metric::MCP_SERVER_RESTARTS_TOTAL,
    metric::MCP_CALLS_TOTAL,
    metric::MCP_NOTIFICATIONS_DROPPED_TOTAL,
    metric::LOG_BACKGROUND_DONE_TIME,
    metric::OTEL_DROPPED_TOTAL,
];

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Renders the metrics of this process.
#[derive(Clone, Debug)]
pub struct MetricsHandle {
    recorder: PrometheusHandle,
    answers: Arc<MetricsAnswers>,
}

/// The text for all requests that wait for one.
#[derive(Debug, Default)]
struct MetricsAnswers {
    /// Requests so far; each has its number.
    requested: AtomicU64,
    /// The last text and the last request that came before it was rendered. Locked while the next is
    /// rendered, so that there is one at a time.
    last: Mutex<(u64, Bytes)>,
}

impl MetricsHandle {
    /// The recorder of this process, installed by the first call.
    pub fn install() -> Self {
        let handle = RECORDER.get_or_init(|| {
            let recorder = builder().build_recorder();
            let handle = recorder.handle();
            if ::metrics::set_global_recorder(recorder).is_err() {
                tracing::warn!("another metrics recorder is installed; /metrics stays empty");
            }
            describe();
            handle
        });
        Self {
            recorder: handle.clone(),
            answers: Arc::default(),
        }
    }

    /// The metrics at some time after the call. Requests that come while a text is rendered share the
    /// next one: however many ask at once, one thread renders.
    pub(crate) async fn answer(&self) -> Result<Bytes, RequestFault> {
        let number = self.answers.requested.fetch_add(1, Ordering::AcqRel) + 1;
        let mut last = self.answers.last.lock().await;
        if last.0 < number {
            let upto = self.answers.requested.load(Ordering::Acquire);
            let handle = self.clone();
            let rendered = tokio::task::spawn_blocking(move || handle.render()).await;
            *last = (upto, rendered.map_err(|_| RequestFault::internal())?.into());
        }
        Ok(last.1.clone())
    }

    /// Sets the time that this process started at; a collector sees restarts as its changes.
    pub(crate) fn record_start(&self, clock: &impl Clock) {
        let started = clock.now().as_millis() as f64 / 1e3;
        gauge!(metric::SERVER_START_TIMESTAMP_SECONDS).set(started);
    }

    /// The metrics now, as Prometheus text.
    pub fn render(&self) -> String {
        as_counters(self.recorder.render())
    }

    /// Keeps the recorder's memory bounded until `stop`.
    pub fn spawn_upkeep(&self, stop: CancellationToken) -> tokio::task::JoinHandle<()> {
        let handle = self.recorder.clone();
        tokio::spawn(async move {
            while stop
                .run_until_cancelled(tokio::time::sleep(UPKEEP))
                .await
                .is_some()
            {
                handle.run_upkeep();
            }
        })
    }
}

/// Counters with fractions. Counters of the recorder are whole numbers, so these are gauges there and
/// counters in the rendered text.
const FRACTIONS: &[&str] = &[metric::LLM_COST_USD_TOTAL];

fn as_counters(text: String) -> String {
    FRACTIONS.iter().fold(text, |text, name| {
        let kind = format!("# TYPE {name} ");
        text.replace(&format!("{kind}gauge\n"), &format!("{kind}counter\n"))
    })
}

fn builder() -> PrometheusBuilder {
    let histograms = metric::ALL
        .iter()
        .map(|metric| metric.name)
        .filter(|name| kind(name) == MetricKind::Histogram);
    histograms.fold(PrometheusBuilder::new(), |builder, name| {
        builder
            .set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets(name))
            .expect("there are buckets")
    })
}

#[derive(PartialEq, Eq)]
enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

/// The upper bounds of a histogram's buckets.
fn buckets(name: &str) -> &'static [f64] {
    let own = metric::BUCKETS.iter().find(|(known, _)| *known == name);
    own.map_or(BUCKETS_SECONDS, |(_, bounds)| bounds)
}

/// The [`MetricKind`] by the name: `_total` is a counter, `_seconds` and names with buckets of their
/// own are histograms, `_timestamp_seconds` and others are gauges.
fn kind(name: &str) -> MetricKind {
    let own = metric::BUCKETS.iter().any(|(known, _)| *known == name);
    if FRACTIONS.contains(&name) || name.ends_with("_timestamp_seconds") {
        MetricKind::Gauge
    } else if name.ends_with("_total") {
        MetricKind::Counter
    } else if own || name.ends_with("_seconds") {
        MetricKind::Histogram
    } else {
        MetricKind::Gauge
    }
}

fn describe() {
    for &MetricDef { name, dotted, help } in metric::ALL {
        let help = format!("{dotted}: {help}");
        match kind(name) {
            MetricKind::Counter => {
                describe_counter!(name, help);
                let sliced = dotted.starts_with("stream.") || dotted.starts_with("dispatch.");
                if sliced && !LABELLED.contains(&name) {
                    counter!(name, &metric::dimensions("")).absolute(0);
                } else if !LABELLED.contains(&name) {
                    counter!(name).absolute(0);
                }
            }
            MetricKind::Gauge => {
                describe_gauge!(name, help);
                if !LABELLED.contains(&name) {
                    gauge!(name).set(0.0);
                }
            }
            MetricKind::Histogram => describe_histogram!(name, help),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn waiting_requests_share_one_text_and_none_gets_an_older_one() {
        let handle = MetricsHandle::install();
        let first = handle.answer().await.expect("a text");
        let held = handle.answers.last.lock().await;
        let mut waiting = Vec::new();
        for _ in 0..10 {
            let handle = handle.clone();
            waiting.push(tokio::spawn(async move { handle.answer().await }));
        }
        while handle.answers.requested.load(Ordering::Acquire) < 11 {
            tokio::task::yield_now().await;
        }
        counter!(metric::TURN_UNWATCHED_TOTAL, "on_disconnect" => "shared_text").increment(1);
        drop(held);
        let mut texts = Vec::new();
        for text in waiting {
            texts.push(text.await.expect("no panic").expect("a text"));
        }
        let shared = |text: &Bytes| text.as_ptr() == texts[0].as_ptr();
        assert!(texts.iter().all(shared), "rendered once for all");
        let has_new = |text: &Bytes| String::from_utf8_lossy(text).contains("shared_text");
        assert!(!has_new(&first) && has_new(&texts[0]));
    }

    // S3-109, D-16
    #[test]
    fn names_use_underscores_and_help_the_dotted_name() {
        let handle = MetricsHandle::install();
        ::metrics::histogram!(metric::WS_SEAM_SECONDS).record(0.003);
        ::metrics::histogram!(metric::DISPATCH_INTENTS).record(2.0);
        gauge!(metric::LLM_COST_USD_TOTAL, "model" => "local:small").increment(0.25);
        counter!(metric::WS_SUBSCRIBE_ERROR_TOTAL, "code" => "invalid_filter").increment(2);
        let text = handle.render();
        for line in [
            "# HELP turnwire_ws_connections ws.connections: Open WebSocket connections",
            "# TYPE turnwire_ws_connections gauge",
            "turnwire_ws_connections 0",
            "# TYPE turnwire_ws_slow_client_closed_total counter",
            "turnwire_ws_slow_client_closed_total 0",
            "turnwire_ws_replay_events_total 0",
            "turnwire_ws_queue_depth_max 0",
            "turnwire_log_storage_full 0",
            "turnwire_ws_subscribe_error_total{code=\"invalid_filter\"} 2",
            "# TYPE turnwire_llm_cost_usd_total counter",
            "turnwire_llm_cost_usd_total{model=\"local:small\"} 0.25",
            "# TYPE turnwire_ws_seam_seconds histogram",
            "turnwire_ws_seam_seconds_bucket{le=\"0.0025\"} 0",
            "turnwire_ws_seam_seconds_bucket{le=\"0.005\"} 1",
            "turnwire_ws_seam_seconds_count 1",
            "# TYPE turnwire_dispatch_intents histogram",
            "turnwire_dispatch_intents_bucket{le=\"1\"} 0",
            "turnwire_dispatch_intents_count 1",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
        let again = MetricsHandle::install();
        assert!(again.render().contains("turnwire_ws_seam_seconds_count 1"));
    }
}
