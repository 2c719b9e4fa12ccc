//! The metrics endpoint: one recorder a process, names of `event::metric` with underscores for
//! dots, the dotted name in the help text (D-16).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge};
use bytes::Bytes;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use turnwire_event::metric;

use crate::error::RequestFault;

/// Upper bounds of histogram buckets in milliseconds: fine where a commit or a seam should be,
/// coarse where it is late anyway.
const BUCKETS_MS: &[f64] = &[
    0.25, 0.5, 1.0, 2.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0,
    5_000.0, 10_000.0, 20_000.0,
];

/// Upper bounds in microseconds, for operations of a few instructions.
const BUCKETS_US: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 50.0, 1_000.0];

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
    metric::PACK_RELOADS_TOTAL,
    metric::STREAM_REGISTRY_SIZE,
    metric::TURN_UNWATCHED_TOTAL,
    metric::PS6_PRINCIPAL_MISMATCH_TOTAL,
    metric::PS6_VERSION_MISMATCH_TOTAL,
    metric::PS6_REASON_UNKNOWN_TOTAL,
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

    /// The metrics now, as Prometheus text.
    pub fn render(&self) -> String {
        whole_names(as_counters(self.recorder.render()))
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
        let kind = format!("# TYPE {} ", name.replace('.', "_"));
        text.replace(&format!("{kind}gauge\n"), &format!("{kind}counter\n"))
    })
}

/// Restores the suffix of histograms whose own name ends with it: the exporter writes `x_count 1`
/// instead of `x_count_count 1`.
fn whole_names(text: String) -> String {
    let histograms = metric::ALL
        .iter()
        .filter(|(name, _)| name.ends_with("_count") && kind(name) == MetricKind::Histogram);
    histograms.fold(text, |text, (name, _)| {
        let name = name.replace('.', "_");
        ["{", " "].into_iter().fold(text, |text, end| {
            text.replace(&format!("\n{name}{end}"), &format!("\n{name}_count{end}"))
        })
    })
}

fn builder() -> PrometheusBuilder {
    let histograms = metric::ALL
        .iter()
        .filter(|(name, _)| kind(name) == MetricKind::Histogram);
    histograms.fold(PrometheusBuilder::new(), |builder, (name, _)| {
        builder
            .set_buckets_for_metric(Matcher::Full((*name).to_owned()), buckets(name))
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
    match own {
        Some((_, bounds)) => bounds,
        None if name.ends_with("_us") => BUCKETS_US,
        None => BUCKETS_MS,
    }
}

/// The [`MetricKind`] by the name: `_total` is a counter, `_ms`, `_us` and names with buckets of
/// their own are histograms, others are gauges.
fn kind(name: &str) -> MetricKind {
    let own = metric::BUCKETS.iter().any(|(known, _)| *known == name);
    if FRACTIONS.contains(&name) {
        MetricKind::Gauge
    } else if name.ends_with("_total") || name == metric::STATUS_EVENT_UNREGISTERED_ID {
        MetricKind::Counter
    } else if own || name.ends_with("_ms") || name.ends_with("_us") {
        MetricKind::Histogram
    } else {
        MetricKind::Gauge
    }
}

fn describe() {
    for &(name, help) in metric::ALL {
        let help = format!("{name}: {help}");
        match kind(name) {
            MetricKind::Counter => {
                describe_counter!(name, help);
                let sliced = name.starts_with("stream.") || name.starts_with("dispatch.");
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

    // S3-109
    #[test]
    fn names_use_underscores_and_help_the_dotted_name() {
        let handle = MetricsHandle::install();
        ::metrics::histogram!(metric::WS_SEAM_MS).record(3.0);
        ::metrics::histogram!(metric::DISPATCH_INTENT_COUNT).record(2.0);
        gauge!(metric::LLM_COST_USD_TOTAL, "model" => "local:small").increment(0.25);
        counter!(metric::WS_SUBSCRIBE_ERROR_TOTAL, "code" => "invalid_filter").increment(2);
        let text = handle.render();
        for line in [
            "# HELP ws_connections ws.connections: Open WebSocket connections",
            "# TYPE ws_connections gauge",
            "ws_connections 0",
            "# TYPE ws_slow_client_closed_total counter",
            "ws_slow_client_closed_total 0",
            "ws_replay_events_total 0",
            "ws_queue_depth_max 0",
            "log_storage_full 0",
            "ws_subscribe_error_total{code=\"invalid_filter\"} 2",
            "# TYPE llm_cost_usd_total counter",
            "llm_cost_usd_total{model=\"local:small\"} 0.25",
            "# TYPE ws_seam_ms histogram",
            "ws_seam_ms_bucket{le=\"2.5\"} 0",
            "ws_seam_ms_bucket{le=\"5\"} 1",
            "ws_seam_ms_count 1",
            "# TYPE dispatch_intent_count histogram",
            "dispatch_intent_count_bucket{le=\"1\"} 0",
            "dispatch_intent_count_count 1",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
        let again = MetricsHandle::install();
        assert!(again.render().contains("ws_seam_ms_count 1"));
    }
}
