//! One call: asked, refused or answered, read to its end within its time and its bytes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream::{BoxStream, unfold};
use futures_util::{Stream, StreamExt as _};
use tokio::time::{Instant, timeout, timeout_at};
use turnwire_dial::{SseError, SseLimits, SseReader};
use turnwire_event::Usage;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::content::sha256_hex;

use super::transport::{Ask, Reply};
use super::{Limits, Setup};
use crate::delta::{Delta, ModelError};
use crate::dialect::{Decoder, Refused};
use crate::request::Request;

/// Bytes of a refusal that are read: its class stands in the first few hundred.
const REFUSAL_BYTES_MAX: usize = 65_536;
/// How long the end of the body is awaited once the answer is whole. It mostly comes in the same
/// breath, and with it the connection can be used again.
const END_WITHIN: Duration = Duration::from_millis(5);
/// What a time that cannot be added to the clock stands for: longer than any process runs.
const FAR: Duration = Duration::from_secs(86_400 * 365);

const LATE: LlmErrorClass = LlmErrorClass::Timeout;
const BROKEN: LlmErrorClass = LlmErrorClass::Transport;
const WRONG: LlmErrorClass = LlmErrorClass::Provider;

/// Asks, and gives the stream of what is answered.
pub(super) async fn open(
    setup: Arc<Setup>,
    request: Request,
) -> Result<impl Stream<Item = Result<Delta, ModelError>> + Send, ModelError> {
    let (reply, first, left) = match begin(&setup, &request).await {
        Ok(begun) => begun,
        Err((status, error)) => {
            tell(&setup, &request.model, status, error);
            return Err(error);
        }
    };
    let answer = Answer {
        chunks: reply.chunks,
        chunk: Bytes::new(),
        sse: SseReader::new(SseLimits::per_event(setup.limits.frame_bytes_max)),
        decoder: setup.dialect.decoder(),
        said: VecDeque::new(),
        state: State::Reading,
        bytes: 0,
        first: Some(first),
        left,
        model: request.model,
        setup,
    };
    Ok(unfold(answer, |mut answer| async move {
        answer.next().await.map(|delta| (delta, answer))
    }))
}

/// The head of an answer that is a stream, when its first byte must be there, and what is left of
/// the call's time; else the status, where there was one, and what it means.
async fn begin(
    setup: &Setup,
    request: &Request,
) -> Result<(Reply, Instant, Duration), (Option<u16>, ModelError)> {
    let begun = Instant::now();
    let total = after(begun, setup.timeouts.total);
    let first = after(begun, setup.timeouts.first_byte).min(total);
    let asking = ask(setup, request).map_err(|error| (None, error))?;
    let reply = match timeout_at(first, setup.transport.open(asking)).await {
        Ok(reply) => reply.map_err(|error| (None, error.at("transport")))?,
        Err(_) => return Err((None, late(first, total, "first_byte"))),
    };
    if !(200..300).contains(&reply.status) {
        let status = Some(reply.status);
        return Err((status, refused(setup, reply, first).await.at("status")));
    }
    if !reply.events {
        let error = ModelError::from(WRONG).at("not_a_stream");
        return Err((Some(reply.status), error));
    }
    let left = setup.timeouts.total.saturating_sub(begun.elapsed());
    Ok((reply, first, left))
}

/// The request in the vendor's words.
fn ask(setup: &Setup, request: &Request) -> Result<Ask, ModelError> {
    let model = request.model.split_once(':').map_or("", |(_, model)| model);
    let params = setup.models.get(model).unwrap_or(&setup.params);
    let encoded = setup.dialect.encode(&setup.name, model, request, params);
    let unsent = ModelError::from(LlmErrorClass::Internal).at("body");
    let body = serde_json::to_vec(&encoded.body).map_err(|_| unsent)?;
    Ok(Ask {
        provider: setup.name.clone(),
        model: model.to_owned(),
        agent: request.agent.clone(),
        call: request.call,
        user_text_sha: sha256_hex(request.user_text().as_bytes()),
        path: encoded.path,
        headers: setup.dialect.headers_for(params),
        body: body.into(),
    })
}

/// What an answer with another status than success means. Its body may break off or be late; then
/// what came of it must do.
async fn refused(setup: &Setup, mut reply: Reply, by: Instant) -> ModelError {
    let mut body = BytesMut::new();
    while body.len() < REFUSAL_BYTES_MAX
        && let Ok(Some(Ok(chunk))) = timeout_at(by, reply.chunks.next()).await
    {
        let room = REFUSAL_BYTES_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    let refused = Refused {
        status: reply.status,
        retry_after: reply.retry_after,
        body: &body,
    };
    setup.dialect.refused(refused)
}

/// Tells whoever runs the server of a call that failed: whose, why and where. The provider's own
/// words may quote the request and stay unsaid.
fn tell(setup: &Setup, model: &str, status: Option<u16>, error: ModelError) {
    let (provider, class, place) = (&setup.name, error.class, error.place);
    match status {
        Some(status) => {
            tracing::warn!(%provider, model, status, ?class, place, "a provider refused a call");
        }
        None => tracing::warn!(%provider, model, ?class, place, "a model call failed"),
    }
}

/// What a wait that ended at `by` ran out of: the call's own time, or that of this step.
fn late(by: Instant, total: Instant, step: &'static str) -> ModelError {
    let place = if by == total { "total" } else { step };
    ModelError::passing(LATE).at(place)
}

/// Whether there is more to come.
#[derive(Clone, Copy)]
enum State {
    Reading,
    /// The body has ended, and the decoder was told.
    Ended,
    /// What was said before is still given, then this.
    Failed(ModelError),
    Over,
}

/// An answer on its way.
struct Answer {
    chunks: BoxStream<'static, Result<Bytes, ModelError>>,
    /// What was read and not yet decoded.
    chunk: Bytes,
    sse: SseReader,
    decoder: Box<dyn Decoder>,
    /// What was decoded and not yet given; what one frame says, no more.
    said: VecDeque<Delta>,
    state: State,
    bytes: u64,
    /// When the first byte must be there; none once it is.
    first: Option<Instant>,
    /// What is left of the call's time. Only waiting for the provider uses it up: how long others
    /// take to hear what it said is not its fault.
    left: Duration,
    model: String,
    setup: Arc<Setup>,
}

impl Answer {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            match self.said.pop_front() {
                Some(Delta::Stop { reason, usage }) => {
                    let usage = self.priced(usage);
                    self.hear_out().await;
                    self.close(State::Over);
                    return Some(Ok(Delta::Stop { reason, usage }));
                }
                Some(delta) => return Some(Ok(delta)),
                None => {}
            }
            match self.state {
                State::Reading => {
                    if let Err(error) = self.advance().await {
                        self.fail(error);
                    }
                }
                // A decoder that takes this for an end is mistaken: nothing said `Stop`.
                State::Ended => self.fail(ModelError::passing(BROKEN).at("no_end")),
                State::Failed(error) => {
                    self.state = State::Over;
                    return Some(Err(error));
                }
                State::Over => return None,
            }
        }
    }

    /// Decodes until something is said, the piece at hand is used up, or the body ends.
    async fn advance(&mut self) -> Result<(), ModelError> {
        if self.chunk.is_empty() && !self.read().await? {
            self.state = State::Ended;
            let ended = self.decoder.end(&mut self.said);
            return ended.map_err(|error| error.at("no_end"));
        }
        let mut rest: &[u8] = &self.chunk;
        while self.said.is_empty() {
            match self.sse.next_event(&mut rest).map_err(unreadable)? {
                Some(event) => {
                    let said = self.decoder.step(event.into(), &mut self.said);
                    said.map_err(|error| error.at("in_stream_error"))?;
                }
                None => break,
            }
        }
        let used = self.chunk.len() - rest.len();
        self.chunk.advance(used);
        Ok(())
    }

    /// Waits for the next piece; false if there is none.
    async fn read(&mut self) -> Result<bool, ModelError> {
        // A flood is always ready: others must have their turn too.
        tokio::task::coop::consume_budget().await;
        let begun = Instant::now();
        let read = self.piece(begun).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        read
    }

    async fn piece(&mut self, begun: Instant) -> Result<bool, ModelError> {
        let total = after(begun, self.left);
        let (step, place) = match self.first {
            Some(first) => (first, "first_byte"),
            None => (after(begun, self.setup.timeouts.idle), "idle"),
        };
        let by = step.min(total);
        loop {
            let chunk = match timeout_at(by, self.chunks.next()).await {
                Ok(Some(chunk)) => chunk.map_err(|error| error.at("transport"))?,
                Ok(None) => return Ok(false),
                Err(_) => return Err(late(by, total, place)),
            };
            // A piece that is ready is taken although its time is over, so the clock is asked.
            if Instant::now() >= total {
                return Err(late(total, total, place));
            }
            self.bytes = self.bytes.saturating_add(chunk.len() as u64);
            let Limits { call_bytes_max, .. } = self.setup.limits;
            if self.bytes > call_bytes_max {
                return Err(ModelError::from(WRONG).at("call_too_large"));
            }
            if !chunk.is_empty() {
                self.first = None;
                self.chunk = chunk;
                return Ok(true);
            }
        }
    }

    /// Gives the body a moment to end by itself.
    async fn hear_out(&mut self) {
        let room = self.setup.limits.call_bytes_max.saturating_sub(self.bytes);
        let chunks = &mut self.chunks;
        let ending = async {
            let mut heard = 0;
            while let Some(Ok(chunk)) = chunks.next().await
                && heard <= room
            {
                heard += chunk.len() as u64;
                tokio::task::coop::consume_budget().await;
            }
        };
        // Whether it ended or not, the call is over.
        let _ = timeout(END_WITHIN, ending).await;
    }

    /// Ends the call with `error`, behind what was said and what that has cost.
    fn fail(&mut self, error: ModelError) {
        tell(&self.setup, &self.model, None, error);
        let usage = self.decoder.usage_so_far();
        if usage != Usage::default() {
            let usage = self.priced(usage);
            self.said.push_back(Delta::Spent { usage });
        }
        self.close(State::Failed(error));
    }

    fn priced(&self, mut usage: Usage) -> Usage {
        if let Some(price) = &self.setup.price {
            let written = self.decoder.cache_written_tokens();
            usage.cost_usd = price.cost_usd(&self.model, &usage, written);
        }
        usage
    }

    /// Lets go of the transport's answer, which closes the connection unless it is at its end.
    fn close(&mut self, state: State) {
        self.chunks = futures_util::stream::empty().boxed();
        self.chunk = Bytes::new();
        self.state = state;
    }
}

fn unreadable(error: SseError) -> ModelError {
    match error {
        SseError::LineTooLarge { .. }
        | SseError::EventTooLarge { .. }
        | SseError::StreamTooLarge { .. } => ModelError::from(WRONG).at("frame_too_large"),
        SseError::Utf8 => ModelError::passing(WRONG).at("not_utf8"),
    }
}

fn after(begun: Instant, time: Duration) -> Instant {
    begun.checked_add(time).unwrap_or_else(|| begun + FAR)
}
