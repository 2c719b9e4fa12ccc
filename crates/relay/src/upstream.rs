//! An upstream and one call of it: the request is sent once, the events are read one by one, and the
//! connection is closed when the call is dropped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout, timeout_at};
use turnwire_dial::{
    DialError, Dialer, HttpMethod, HttpRequest, RequestHeaders, SseLimits, SseReader,
    StreamingResponse, Url,
};
use turnwire_event::metric;

use crate::dialect::{UpstreamDecoder, UpstreamDialect};
use crate::fault::UpstreamFault;
use crate::inner_event::InnerEvent;

/// How long to wait for what an upstream sends after the end of its answer, to count it.
const DRAIN_WAIT: Duration = Duration::from_secs(1);
/// How long the request to `cancel_url` may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// The events of an upstream after which other tasks get their turn: those that write to its clients
/// keep up with a burst, which one read may bring.
const BURST_EVENTS: u32 = 64;
/// The most bytes of the answer to that request; nothing in it is used.
const CANCEL_ANSWER_BYTES_MAX: usize = 65_536;

/// The bounds of one call of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamLimits {
    /// The longest time until the connection is open, TLS included.
    pub connect: Duration,
    /// The longest time without an event; comments are none (D-13).
    pub idle: Duration,
    /// The most bytes of one event.
    pub event_bytes_max: usize,
    /// The most bytes of the whole stream.
    pub stream_bytes_max: u64,
    /// The most bytes of the text and reasoning of an answer.
    pub text_bytes_max: usize,
}

/// Where an agent runs that is not in this process.
pub struct Upstream {
    /// The agent of the pack that it is.
    pub agent: String,
    pub url: Url,
    pub dialect: UpstreamDialect,
    /// Where a stop is posted to, if the upstream has such a place.
    pub cancel_url: Option<Url>,
    /// Headers of every request, with the key.
    pub headers: RequestHeaders,
    pub limits: UpstreamLimits,
    /// The messages of earlier turns that a request has; 0 for none.
    pub history_max: usize,
    pub dialer: Arc<Dialer>,
}

/// The events of one answer. Dropping it closes the connection, and tells `cancel_url` unless the
/// upstream had ended its answer.
pub(crate) struct UpstreamCall {
    upstream: Arc<Upstream>,
    body: StreamingResponse,
    chunk: Bytes,
    bytes_read: u64,
    sse: SseReader,
    decoder: UpstreamDecoder,
    /// Events that were decoded and not yet returned: those of one block.
    pending: VecDeque<InnerEvent>,
    idle_deadline: Instant,
    /// True once an event was returned: the time until the next is asked for is not the upstream's.
    is_returned: bool,
    /// The events since other tasks had their turn.
    burst_events: u32,
    cancel: CancelNotice,
}

/// Tells `cancel_url` of a stop when it is dropped, unless the call has ended by itself.
pub(crate) struct CancelNotice {
    upstream: Arc<Upstream>,
    /// The body of the request; `None` once nothing must be told.
    body: Option<Bytes>,
}

impl CancelNotice {
    /// A notice for a call that begins now.
    pub(crate) fn new(upstream: Arc<Upstream>, body: Bytes) -> Self {
        Self {
            upstream,
            body: Some(body),
        }
    }

    /// The upstream has ended by itself.
    fn disarm(&mut self) {
        self.body = None;
    }
}

impl Drop for CancelNotice {
    fn drop(&mut self) {
        let (Some(body), Some(url)) = (self.body.take(), self.upstream.cancel_url.clone()) else {
            return;
        };
        // The call is dropped with its turn; the notice outlives both, for a bounded time.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let request = HttpRequest {
            headers: self.upstream.headers.clone(),
            body: Some(body),
            timeout: CANCEL_TIMEOUT,
            max_bytes: CANCEL_ANSWER_BYTES_MAX,
            redirects_max: None,
            ..HttpRequest::new(HttpMethod::Post, url)
        };
        let dialer = Arc::clone(&self.upstream.dialer);
        let agent = self.upstream.agent.clone();
        runtime.spawn(async move {
            let status = dialer.send(request).await.map(|answer| answer.status);
            if !matches!(status, Ok(200..300)) {
                tracing::warn!(
                    agent,
                    ?status,
                    "an upstream did not take the notice of a stop"
                );
            }
        });
    }
}

impl Upstream {
    /// Sends the request and waits for the head of the answer. The request is never sent again.
    pub(crate) async fn call(
        self: &Arc<Self>,
        body: Bytes,
        trace: RequestHeaders,
        mut cancel: CancelNotice,
    ) -> Result<UpstreamCall, UpstreamFault> {
        let request = HttpRequest {
            headers: self.headers.clone().with(trace),
            accept: "text/event-stream".into(),
            body: Some(body),
            connect: self.limits.connect,
            timeout: Duration::MAX,
            max_bytes: usize::try_from(self.limits.stream_bytes_max).unwrap_or(usize::MAX),
            // A redirect would send the request, and the key, again and elsewhere.
            redirects_max: None,
            ..HttpRequest::new(HttpMethod::Post, self.url.clone())
        };
        let idle_deadline = Instant::now() + self.limits.idle;
        let opening = self.dialer.send_streaming(request);
        let response = match timeout_at(idle_deadline, opening).await {
            Err(_) => return Err(UpstreamFault::Idle),
            Ok(Err(error)) => return Err(self.not_reached(error, cancel)),
            Ok(Ok(response)) => response,
        };
        if let Some(fault) = refusal(&response) {
            cancel.disarm();
            return Err(fault);
        }
        let limits = SseLimits {
            stream_bytes_max: self.limits.stream_bytes_max,
            ..SseLimits::per_event(self.limits.event_bytes_max)
        };
        Ok(UpstreamCall {
            upstream: Arc::clone(self),
            body: response,
            chunk: Bytes::new(),
            bytes_read: 0,
            sse: SseReader::new(limits),
            decoder: self.dialect.decoder(),
            pending: VecDeque::new(),
            idle_deadline,
            is_returned: false,
            burst_events: 0,
            cancel,
        })
    }

    /// The fault of a request without an answer. An upstream that was not reached needs no notice.
    fn not_reached(&self, error: DialError, mut cancel: CancelNotice) -> UpstreamFault {
        let fault = UpstreamFault::of_request(error);
        cancel.disarm();
        fault
    }
}

/// The fault of a response that is no answer.
fn refusal(response: &StreamingResponse) -> Option<UpstreamFault> {
    match (response.status(), response.content_type().as_str()) {
        (200, "text/event-stream") => None,
        (200, _) => Some(UpstreamFault::NoEventStream),
        (429, _) => Some(UpstreamFault::RateLimited),
        (status, _) => Some(UpstreamFault::Status(status)),
    }
}

impl UpstreamCall {
    /// The bytes of the stream that have come.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Waits for an event within the idle window and the bounds of the stream.
    pub(crate) async fn next(&mut self) -> Result<InnerEvent, UpstreamFault> {
        if std::mem::take(&mut self.is_returned) {
            self.idle_deadline = Instant::now() + self.upstream.limits.idle;
        }
        loop {
            if self.burst_events >= BURST_EVENTS {
                self.burst_events = 0;
                tokio::task::yield_now().await;
            }
            if let Some(event) = self.pending.pop_front() {
                self.is_returned = true;
                self.burst_events += 1;
                return Ok(event);
            }
            let mut unread: &[u8] = &self.chunk;
            let available = unread.len();
            let is_event = match self.sse.next_event(&mut unread)? {
                Some(event) => {
                    self.decoder.step(event, &mut self.pending)?;
                    true
                }
                None => false,
            };
            let consumed = available - unread.len();
            self.chunk.advance(consumed);
            self.bytes_read += consumed as u64;
            match is_event {
                // It may have no more to say than that the upstream is there.
                true => self.idle_deadline = Instant::now() + self.upstream.limits.idle,
                false => self.read().await?,
            }
        }
    }

    /// Waits for more bytes.
    async fn read(&mut self) -> Result<(), UpstreamFault> {
        // A flood of chunks is always ready: other tasks get their turn, and the clock is read.
        tokio::task::coop::consume_budget().await;
        if Instant::now() >= self.idle_deadline {
            return Err(UpstreamFault::Idle);
        }
        // An empty piece keeps the whole buffer, and the connection would take a new one for each read.
        self.chunk = Bytes::new();
        match timeout_at(self.idle_deadline, self.body.next()).await {
            Err(_) => Err(UpstreamFault::Idle),
            Ok(None) => {
                self.cancel.disarm();
                self.decoder.end(&mut self.pending)
            }
            Ok(Some(Err(error))) => Err(UpstreamFault::of_body(error)),
            Ok(Some(Ok(chunk))) => {
                self.chunk = chunk;
                Ok(())
            }
        }
    }

    /// The upstream has ended by itself, without an end of its answer.
    pub(crate) fn ended(&mut self) {
        self.cancel.disarm();
    }

    /// The upstream has ended its answer: what it still sends is counted for a moment, on a task of
    /// its own, and then the connection is closed.
    pub(crate) fn finish(mut self) {
        self.cancel.disarm();
        tokio::spawn(async move {
            let drained = async {
                loop {
                    match self.next().await {
                        Ok(InnerEvent::Sentinel | InnerEvent::Usage(_)) => {}
                        // What is not an event is discarded as well, and ends the reading.
                        Ok(_) => count_discarded(1),
                        Err(UpstreamFault::Malformed) => return count_discarded(1),
                        Err(_) => return,
                    }
                }
            };
            let _ = timeout(DRAIN_WAIT, drained).await;
        });
    }
}

/// Counts events of an upstream that came after the end of their turn.
pub(crate) fn count_discarded(count: u64) {
    metrics::counter!(metric::RELAY_DISCARDED_AFTER_TERMINAL_TOTAL).increment(count);
}
