//! The [`Exporter`]: one task that sends batches of spans to a collector, one at a time. A batch that
//! the collector cannot take now is sent again, with growing pauses, until its time is over.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};
use turnwire_dial::{
    AllowRule, DialError, Dialer, DialerOptions, HttpMethod, HttpRequest, HttpResponse,
};

use crate::drops::{DropReason, count_dropped, count_exported, register};
use crate::export_request::{EncodedResource, export_request, rejected_spans};
use crate::options::OtlpOptions;
use crate::queue::SpanQueue;

/// The pause before the second attempt; doubled with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest pause, also of a collector's `Retry-After`.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// The most bytes of a response: it has a number and a sentence.
const RESPONSE_BYTES_MAX: usize = 65_536;
/// How often a failing export is logged: it is counted each time.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The exporter could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExporterError(DialError);

impl std::fmt::Display for ExporterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ExporterError {}

/// The running export. Dropped without [`shutdown`](Self::shutdown) it goes on with the runtime.
pub struct Exporter {
    queue: Arc<SpanQueue>,
    task: JoinHandle<()>,
    stop: tokio::sync::watch::Sender<Option<Instant>>,
}

impl Exporter {
    /// Starts the task on the current runtime.
    pub(crate) fn start(options: OtlpOptions) -> Result<Self, ExporterError> {
        // The operator named the host: it may be private, and no other one becomes reachable.
        let allow = AllowRule::for_host_of(&options.url).into_iter().collect();
        let dialer = Dialer::new(DialerOptions { allow }).map_err(ExporterError)?;
        let queue = Arc::new(SpanQueue::new(options.queue_spans, options.batch_spans));
        register();
        let (stop, stopping) = tokio::sync::watch::channel(None);
        let task = ExportTask {
            resource: EncodedResource::new(&options.resource),
            dialer,
            queue: Arc::clone(&queue),
            stopping,
            logged: None,
            options,
        };
        Ok(Self {
            queue,
            task: tokio::spawn(task.run()),
            stop,
        })
    }

    pub(crate) fn queue(&self) -> &Arc<SpanQueue> {
        &self.queue
    }

    /// Sends what waits until `deadline`; the rest is dropped and counted. Later spans are too.
    pub async fn shutdown(self, deadline: Instant) {
        self.stop.send_replace(Some(deadline));
        self.queue.close();
        let _ = self.task.await;
    }
}

/// The result of one request.
enum Attempt {
    /// The collector has the batch, without this many spans.
    Taken { rejected: u64 },
    /// The collector will never take the batch.
    Refused(u16),
    /// The batch may be sent again, after this pause if the collector said so.
    Retry(Option<Duration>),
}

struct ExportTask {
    options: OtlpOptions,
    resource: EncodedResource,
    dialer: Dialer,
    queue: Arc<SpanQueue>,
    /// The end of the last batch, once the server stops; the [`Exporter`] has the other end.
    stopping: tokio::sync::watch::Receiver<Option<Instant>>,
    /// When a failure was logged last.
    logged: Option<Instant>,
}

impl ExportTask {
    async fn run(mut self) {
        let mut due = Instant::now() + self.options.schedule_delay;
        loop {
            if !self.queue.is_closed() && !self.queue.has_batch() {
                tokio::select! {
                    () = self.queue.batch_ready() => {}
                    () = sleep_until(due) => {}
                }
            }
            let is_closed = self.queue.is_closed();
            if !is_closed && !self.queue.has_batch() && Instant::now() < due {
                continue;
            }
            loop {
                let batch = self.queue.take_batch();
                if batch.is_empty() {
                    break;
                }
                self.export(batch).await;
                if !self.queue.is_closed() && !self.queue.has_batch() {
                    break;
                }
            }
            if is_closed {
                return;
            }
            due = Instant::now() + self.options.schedule_delay;
        }
    }

    /// The time when nothing is sent any more, once the server stops.
    fn stop_deadline(&self) -> Option<Instant> {
        *self.stopping.borrow()
    }

    /// Sends a batch until the collector has taken or refused it, or its time is over.
    async fn export(&mut self, batch: Vec<Bytes>) {
        let spans = batch.len() as u64;
        let body = export_request(&self.resource, &batch);
        let batch_deadline = Instant::now() + self.options.export_timeout;
        let mut pause = PAUSE_MIN;
        loop {
            let deadline = self
                .stop_deadline()
                .map_or(batch_deadline, |stop| stop.min(batch_deadline));
            let wait = match self.send(body.clone(), deadline).await {
                Attempt::Taken { rejected } => {
                    let rejected = rejected.min(spans);
                    if rejected > 0 {
                        self.log(&format!(
                            "the collector rejected {rejected} of {spans} spans"
                        ));
                        count_dropped(DropReason::Rejected, rejected);
                    }
                    return count_exported(spans - rejected);
                }
                Attempt::Refused(status) => {
                    self.log(&format!(
                        "the collector refused a batch with status {status}"
                    ));
                    return count_dropped(DropReason::Refused, spans);
                }
                Attempt::Retry(after) => after.unwrap_or_else(|| jittered(pause)),
            };
            pause = (pause * 2).min(PAUSE_MAX);
            let next = Instant::now() + wait.min(PAUSE_MAX);
            if next >= batch_deadline || !self.pause_until(next).await {
                let reason = match self.stop_deadline() {
                    Some(_) => DropReason::Shutdown,
                    None => DropReason::Unavailable,
                };
                self.log("the collector does not take spans; they are dropped");
                return count_dropped(reason, spans);
            }
        }
    }

    /// Waits until `next`. False if the server stops before.
    async fn pause_until(&mut self, next: Instant) -> bool {
        loop {
            if self.stop_deadline().is_some_and(|stop| next >= stop) {
                return false;
            }
            tokio::select! {
                () = sleep_until(next) => return true,
                changed = self.stopping.changed() => if changed.is_err() {
                    sleep_until(next).await;
                    return true;
                },
            }
        }
    }

    /// Sends the batch once.
    async fn send(&mut self, body: Bytes, deadline: Instant) -> Attempt {
        let options = &self.options;
        let request = HttpRequest {
            headers: options.headers.clone(),
            accept: "application/x-protobuf".into(),
            content_type: "application/x-protobuf".into(),
            body: Some(body),
            timeout: options.timeout,
            max_bytes: RESPONSE_BYTES_MAX,
            redirects_max: None,
            ..HttpRequest::new(HttpMethod::Post, options.url.clone())
        };
        // A stop that comes during the request ends it at its own deadline.
        let mut stopping = self.stopping.clone();
        let stopped = async {
            let stop = stopping.wait_for(Option::is_some).await;
            let stop = stop.ok().and_then(|stop| *stop);
            match stop {
                Some(stop) => sleep_until(stop).await,
                None => std::future::pending().await,
            }
        };
        let sent = tokio::select! {
            sent = timeout_at(deadline, self.dialer.send(request)) => sent.unwrap_or(Err(DialError::Timeout)),
            () = stopped => Err(DialError::Timeout),
        };
        match sent {
            Ok(response) => judge(&response),
            // These will not change by themselves.
            Err(DialError::Refused | DialError::Setup) => Attempt::Refused(0),
            Err(DialError::TooLarge { .. } | DialError::UnexpectedEncoding) => {
                Attempt::Taken { rejected: 0 }
            }
            Err(_) => Attempt::Retry(None),
        }
    }

    /// Logs a failure, once a minute: never the address or a text of the other side.
    fn log(&mut self, message: &str) {
        let now = Instant::now();
        if self.logged.is_none_or(|last| now >= last + LOG_EVERY) {
            self.logged = Some(now);
            let waiting = self.queue.len();
            tracing::warn!(waiting, "traces: {message} (turnwire_otel_dropped_total)");
        }
    }
}

/// What a response means, by the specification of OTLP over HTTP.
fn judge(response: &HttpResponse) -> Attempt {
    match response.status {
        200..300 => Attempt::Taken {
            rejected: rejected_spans(&response.body),
        },
        429 | 502 | 503 | 504 => {
            let after = response.header("retry-after");
            let seconds = after.and_then(|after| after.trim().parse().ok());
            Attempt::Retry(seconds.map(Duration::from_secs))
        }
        status => Attempt::Refused(status),
    }
}

/// Half of `pause` to all of it, so that servers cut off together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX));
    pause.mul_f64(0.5 + random / 2.0)
}
