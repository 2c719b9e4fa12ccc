//! One call of a [`super::RemoteProvider`]: sends the request and decodes the response within its
//! time and size limits.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt as _};
use tokio::time::{Instant, timeout, timeout_at};
use turnwire_dial::{SseError, SseLimits, SseReader};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::content::sha256_hex;
use turnwire_event::{ContentBlock, TokenUsage};

use super::transport::{ChunkStream, TransportRequest, TransportResponse};
use super::{ModelResponseLimits, RemoteConfig};
use crate::delta::{Delta, ModelError};
use crate::dialect::{DeltaQueue, EncodeInput, ErrorResponse, StreamDecoder};
use crate::provider_fault::{ProviderFault, ProviderMessage};
use crate::request::ModelRequest;

/// Bytes that are read of an error response: its error code is in the first few hundred.
const ERROR_BODY_BYTES_MAX: usize = 65_536;
/// How long to wait for the end of the body once the answer is complete. The end mostly arrives at
/// once, and then the connection can be reused.
const BODY_END_WAIT: Duration = Duration::from_millis(5);
/// Used for a deadline that overflows the clock: longer than any process runs.
const FAR_FUTURE: Duration = Duration::from_secs(86_400 * 365);

const TIMEOUT: LlmErrorClass = LlmErrorClass::Timeout;
const TRANSPORT: LlmErrorClass = LlmErrorClass::Transport;
const PROVIDER: LlmErrorClass = LlmErrorClass::Provider;

/// Sends the request and returns the stream of deltas.
pub(super) async fn open(
    config: Arc<RemoteConfig>,
    request: ModelRequest,
) -> Result<impl Stream<Item = Result<Delta, ModelError>> + Send, ModelError> {
    let opened = match send(&config, &request).await {
        Ok(opened) => opened,
        Err((response, error)) => return Err(report(&config, &request, response, error)),
    };
    let answer = AnswerStream {
        chunks: opened.reply.chunks,
        chunk: Bytes::new(),
        sse: SseReader::new(SseLimits::per_event(config.limits.frame_bytes_max)),
        decoder: config.dialect.decoder(),
        deltas: DeltaQueue::new(),
        usage_reported: TokenUsage::default(),
        state: StreamState::Reading,
        bytes: 0,
        first_byte_deadline: Some(opened.first_byte_deadline),
        remaining: opened.remaining,
        silent: Duration::ZERO,
        failed: opened.failed,
        request,
        config,
    };
    Ok(unfold(answer, |mut answer| async move {
        answer.next().await.map(|delta| (delta, answer))
    }))
}

/// Sends the request and waits for the response head.
async fn send(
    config: &RemoteConfig,
    request: &ModelRequest,
) -> Result<OpenResponse, (FailedResponse, ModelError)> {
    let started = Instant::now();
    let total = after(started, config.timeouts.total);
    let first_byte_deadline = after(started, config.timeouts.first_byte).min(total);
    let mut failed = FailedResponse::default();
    let transport_request = match encode(config, request) {
        Ok(encoded) => encoded,
        Err(error) => return Err((failed, error)),
    };
    failed.path.clone_from(&transport_request.path);
    let opening = config.transport.open(transport_request);
    let reply = timeout_at(first_byte_deadline, opening).await;
    let timed_out = |_| timeout_error(first_byte_deadline, total, "first_byte");
    let reply = reply.map_err(timed_out).and_then(|reply| reply);
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => return Err((failed, error.with_location("transport"))),
    };
    failed.status = Some(reply.status);
    if !(200..300).contains(&reply.status) {
        let (said, error) = classify_error_response(config, reply, first_byte_deadline).await;
        failed.said = said;
        return Err((failed, error.with_location("status")));
    }
    if !reply.is_event_stream {
        let error = ModelError::from(PROVIDER).with_location("not_a_stream");
        return Err((failed, error));
    }
    let remaining = config.timeouts.total.saturating_sub(started.elapsed());
    Ok(OpenResponse {
        reply,
        first_byte_deadline,
        remaining,
        failed,
    })
}

/// A response whose body is a stream.
struct OpenResponse {
    reply: TransportResponse,
    first_byte_deadline: Instant,
    /// The remaining time of the call.
    remaining: Duration,
    /// What is known of the response if the stream fails.
    failed: FailedResponse,
}

/// Encodes the [`ModelRequest`] for the transport.
fn encode(config: &RemoteConfig, request: &ModelRequest) -> Result<TransportRequest, ModelError> {
    let model = request.model.split_once(':').map_or("", |(_, model)| model);
    let params = config.models.get(model).unwrap_or(&config.params);
    let encoded = config.dialect.encode(&EncodeInput {
        provider: &config.name,
        model,
        request,
        params,
    });
    let encode_error = ModelError::from(LlmErrorClass::Internal).with_location("body");
    let body = serde_json::to_vec(&encoded.body).map_err(|_| encode_error)?;
    Ok(TransportRequest {
        provider: config.name.clone(),
        model: model.to_owned(),
        agent: request.agent.clone(),
        call: request.call,
        user_text_sha: sha256_hex(request.user_text().as_bytes()),
        path: encoded.path,
        headers: config.dialect.headers_for(params),
        body: body.into(),
    })
}

/// Classifies a [`TransportResponse`] with an error status. Its body may be cut off or late; the
/// received part is used then.
async fn classify_error_response(
    config: &RemoteConfig,
    mut reply: TransportResponse,
    deadline: Instant,
) -> (ProviderMessage, ModelError) {
    let mut body = BytesMut::new();
    while body.len() < ERROR_BODY_BYTES_MAX
        && let Ok(Some(Ok(chunk))) = timeout_at(deadline, reply.chunks.next()).await
    {
        let capacity = ERROR_BODY_BYTES_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(capacity)]);
    }
    let response = ErrorResponse {
        status: reply.status,
        retry_after: reply.retry_after,
        body: &body,
    };
    let said = ProviderMessage::read_response(&body);
    (said, config.dialect.classify_response(response))
}

/// The response of a call that failed, as far as there was one.
#[derive(Clone, Default)]
struct FailedResponse {
    /// The path of the request.
    path: String,
    status: Option<u16>,
    said: ProviderMessage,
}

/// Logs a failed call with its [`ProviderFault`], and adds the fault to the error. The provider's
/// message is another party's text: without keys, without texts of the request, and short.
fn report(
    config: &RemoteConfig,
    request: &ModelRequest,
    FailedResponse { path, status, said }: FailedResponse,
    mut error: ModelError,
) -> ModelError {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let texts = blocks.filter_map(|block| -> Option<Cow<'_, str>> {
        match block {
            ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => {
                Some(text.as_str().into())
            }
            ContentBlock::ToolUse { input, .. } => Some(input.to_string().into()),
            ContentBlock::ToolResult { content, .. } => Some(content.to_string().into()),
            // Models are not sent these.
            ContentBlock::Component { .. } | ContentBlock::Data { .. } => None,
        }
    });
    let texts: Vec<_> = texts
        .chain(request.system.as_deref().map(Cow::from))
        .collect();
    let said = said.redacted(|text| config.transport.hide_keys(text), &texts);
    let fault = ProviderFault {
        provider: config.name.clone(),
        model: request.model.clone(),
        url: config.transport.address(&path),
        status,
        said,
    };
    let ProviderFault {
        provider,
        model,
        url,
        status,
        said,
    } = &fault;
    let (class, place) = (error.class, error.location);
    let [kind, code, message] = [&said.kind, &said.code, &said.message]
        .map(|text| Some(text).filter(|text| !text.is_empty()));
    tracing::warn!(
        %provider,
        model,
        url,
        status,
        error_type = kind,
        error_code = code,
        error_message = message,
        ?class,
        place,
        "a model call failed"
    );
    error.fault = Some(Arc::new(fault));
    error
}

/// The timeout error of a wait that ended at `deadline`: of the whole call or of this step.
fn timeout_error(deadline: Instant, total: Instant, step: &'static str) -> ModelError {
    let place = if deadline == total { "total" } else { step };
    ModelError::transient(TIMEOUT).with_location(place)
}

/// Progress of an answer.
#[derive(Clone)]
enum StreamState {
    Reading,
    /// The body has ended, and [`StreamDecoder::end`] was called.
    Ended,
    /// Decoded deltas are still delivered, then this error.
    Failed(ModelError),
    Done,
}

/// The state of one streamed answer; yields its [`Delta`]s.
struct AnswerStream {
    chunks: ChunkStream,
    /// Bytes received and not yet decoded.
    chunk: Bytes,
    sse: SseReader,
    decoder: Box<dyn StreamDecoder>,
    /// Deltas decoded and not yet delivered; at most those of one frame.
    deltas: DeltaQueue,
    /// The usage that the last [`Delta::PartialUsage`] reported, without its cost.
    usage_reported: TokenUsage,
    state: StreamState,
    bytes: u64,
    /// Deadline of the first byte; `None` once it has arrived.
    first_byte_deadline: Option<Instant>,
    /// Remaining time of the call. Only waiting for the provider uses it up, not a slow consumer.
    remaining: Duration,
    /// The time spent waiting since the last part of the answer.
    silent: Duration,
    /// What is known of the response if it fails; an error event adds what the provider said.
    failed: FailedResponse,
    request: ModelRequest,
    config: Arc<RemoteConfig>,
}

impl AnswerStream {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            match self.deltas.pop_front() {
                Some(Delta::Stop { reason, usage }) => {
                    let usage = self.with_cost(usage);
                    self.read_to_end().await;
                    self.close(StreamState::Done);
                    return Some(Ok(Delta::Stop { reason, usage }));
                }
                Some(delta) => return Some(Ok(delta)),
                None => {}
            }
            match self.state.clone() {
                StreamState::Reading => {
                    if let Err(error) = self.advance().await {
                        self.fail(error);
                    }
                }
                // The body ended without `Delta::Stop`, whatever the decoder says.
                StreamState::Ended => {
                    self.fail(ModelError::transient(TRANSPORT).with_location("no_end"))
                }
                StreamState::Failed(error) => {
                    self.state = StreamState::Done;
                    return Some(Err(error));
                }
                StreamState::Done => return None,
            }
        }
    }

    /// Decodes until there is a delta, the chunk is used up, or the body ends.
    async fn advance(&mut self) -> Result<(), ModelError> {
        if self.chunk.is_empty() && !self.read().await? {
            self.state = StreamState::Ended;
            let ended = self.decoder.end(&mut self.deltas);
            return ended.map_err(|error| error.with_location("no_end"));
        }
        let mut unread: &[u8] = &self.chunk;
        while self.deltas.is_empty() {
            match self.sse.next_event(&mut unread).map_err(sse_error)? {
                Some(event) => {
                    let data = event.data;
                    if let Err(error) = self.decoder.step(event, &mut self.deltas) {
                        self.failed.said = ProviderMessage::read_event(data);
                        return Err(error.with_location("in_stream_error"));
                    }
                    if !self.deltas.is_empty() {
                        self.silent = Duration::ZERO;
                    }
                    let usage = self.decoder.usage_so_far();
                    // A caller that stops the call in the middle has these numbers only.
                    let is_last = matches!(self.deltas.back(), Some(Delta::Stop { .. }));
                    if usage != self.usage_reported && !is_last {
                        self.usage_reported = usage;
                        let model = &self.request.model;
                        let usage = with_cost(&self.config, model, &*self.decoder, usage);
                        self.deltas.push_front(Delta::PartialUsage { usage });
                    }
                }
                None => break,
            }
        }
        let consumed = self.chunk.len() - unread.len();
        self.chunk.advance(consumed);
        Ok(())
    }

    /// Waits for the next chunk; false at the end of the body.
    async fn read(&mut self) -> Result<bool, ModelError> {
        // A flood of chunks is always ready: yield to other tasks.
        tokio::task::coop::consume_budget().await;
        let started = Instant::now();
        let read = self.next_chunk(started).await;
        let waited = started.elapsed();
        self.remaining = self.remaining.saturating_sub(waited);
        self.silent = self.silent.saturating_add(waited);
        read
    }

    async fn next_chunk(&mut self, started: Instant) -> Result<bool, ModelError> {
        let total = after(started, self.remaining);
        let (step, place) = match self.first_byte_deadline {
            Some(first_byte_deadline) => (first_byte_deadline, "first_byte"),
            None => (after(started, self.config.timeouts.idle), "idle"),
        };
        let silence = self.config.timeouts.silence.saturating_sub(self.silent);
        let silence = after(started, silence);
        let (step, place) = match silence < step {
            true => (silence, "silence"),
            false => (step, place),
        };
        let deadline = step.min(total);
        loop {
            let chunk = match timeout_at(deadline, self.chunks.next()).await {
                Ok(Some(chunk)) => chunk.map_err(|error| error.with_location("transport"))?,
                Ok(None) => return Ok(false),
                Err(_) => return Err(timeout_error(deadline, total, place)),
            };
            // A ready chunk is returned even after the deadline, so check the clock.
            let now = Instant::now();
            if now >= total {
                return Err(timeout_error(total, total, place));
            }
            if now >= silence {
                return Err(timeout_error(silence, total, "silence"));
            }
            self.bytes = self.bytes.saturating_add(chunk.len() as u64);
            let ModelResponseLimits { call_bytes_max, .. } = self.config.limits;
            if self.bytes > call_bytes_max {
                return Err(ModelError::from(PROVIDER).with_location("call_too_large"));
            }
            if !chunk.is_empty() {
                self.first_byte_deadline = None;
                self.chunk = chunk;
                return Ok(true);
            }
        }
    }

    /// Reads on for a moment so that the body can end and the connection be reused.
    async fn read_to_end(&mut self) {
        let capacity = self.config.limits.call_bytes_max.saturating_sub(self.bytes);
        let chunks = &mut self.chunks;
        let ending = async {
            let mut received = 0;
            while let Some(Ok(chunk)) = chunks.next().await
                && received <= capacity
            {
                received += chunk.len() as u64;
                tokio::task::coop::consume_budget().await;
            }
        };
        // The call is complete whether the body ended or not.
        let _ = timeout(BODY_END_WAIT, ending).await;
    }

    /// Ends the call with `error`, after the decoded deltas and the usage that is not yet reported.
    fn fail(&mut self, error: ModelError) {
        let error = report(&self.config, &self.request, self.failed.clone(), error);
        let usage = self.decoder.usage_so_far();
        if usage != self.usage_reported {
            let usage = self.with_cost(usage);
            self.deltas.push_back(Delta::PartialUsage { usage });
        }
        self.close(StreamState::Failed(error));
    }

    fn with_cost(&self, usage: TokenUsage) -> TokenUsage {
        with_cost(&self.config, &self.request.model, &*self.decoder, usage)
    }

    /// Drops the response body, which closes the connection unless the body has ended.
    fn close(&mut self, state: StreamState) {
        self.chunks = futures_util::stream::empty().boxed();
        self.chunk = Bytes::new();
        self.state = state;
    }
}

/// `usage` of `model` with its cost by the prices of `config`.
fn with_cost(
    config: &RemoteConfig,
    model: &str,
    decoder: &dyn StreamDecoder,
    mut usage: TokenUsage,
) -> TokenUsage {
    if let Some(price) = &config.price {
        usage.cost_usd = price.cost_usd(model, &usage, decoder.cache_written_tokens());
    }
    usage
}

fn sse_error(error: SseError) -> ModelError {
    match error {
        SseError::LineTooLarge { .. }
        | SseError::EventTooLarge { .. }
        | SseError::StreamTooLarge { .. } => {
            ModelError::from(PROVIDER).with_location("frame_too_large")
        }
        SseError::Utf8 => ModelError::transient(PROVIDER).with_location("not_utf8"),
    }
}

fn after(start: Instant, time: Duration) -> Instant {
    start
        .checked_add(time)
        .unwrap_or_else(|| start + FAR_FUTURE)
}
