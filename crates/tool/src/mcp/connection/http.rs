//! Streamable HTTP through the [`Dialer`]. A message is a POST; its response is JSON, or server-sent
//! events that end with the response. A GET opens the stream of the server's own messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, try_unfold};
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, JsonRpcError, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use turnwire_dial::{
    DialError, Dialer, HttpMethod, HttpRequest, RequestHeaders, SseBlock, SseLimits, SseReader,
    StreamingResponse, Url,
};

use super::health::{ConnectionFault, ConnectionHealth, MESSAGE_BYTES_MAX};
use super::intake::MessageIntake;
use crate::mcp::restart::RestartPolicy;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Until the head of the response to a POST. A server may do all of its work before it, so this is
/// longer than any call; the call has its own deadline.
const POST_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Until the head of a stream, or the response to the end of a session.
const SHORT_TIMEOUT: Duration = Duration::from_secs(10);
/// Before the stream of a call is resumed after its last event. The call waits for it, so the pause
/// does not grow; the call's deadline ends it.
const RESUME_PAUSE: Duration = Duration::from_secs(1);

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
const JSON_OR_EVENT_STREAM: &str = "application/json, text/event-stream";

/// Why a message could not be exchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFailure {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Fault(#[from] ConnectionFault),
    #[error(transparent)]
    Events(#[from] turnwire_dial::SseError),
    #[error("a header cannot be sent")]
    Header,
}

type Error = StreamableHttpError<HttpFailure>;

fn client_error(failure: impl Into<HttpFailure>) -> Error {
    StreamableHttpError::Client(failure.into())
}

/// The HTTP side of one connection.
#[derive(Clone)]
pub(super) struct HttpTransport {
    pub(super) dialer: Arc<Dialer>,
    pub(super) url: Url,
    /// From the pack; may contain keys.
    pub(super) headers: RequestHeaders,
    pub(super) health: Arc<ConnectionHealth>,
    pub(super) intake: Arc<MessageIntake>,
    /// Of the stream of the server's own messages; `None` before the first one.
    pub(super) stream_restarts: Arc<Mutex<Option<RestartPolicy>>>,
}

impl HttpTransport {
    fn request(
        &self,
        method: HttpMethod,
        session_id: Option<&str>,
        last_event_id: Option<&str>,
        protocol_headers: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<HttpRequest, Error> {
        let protocol = protocol_headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let ids = [(SESSION_ID, session_id), (LAST_EVENT_ID, last_event_id)];
        let ids = ids.into_iter().filter_map(|(id, value)| Some((id, value?)));
        let headers = RequestHeaders::new(protocol.chain(ids));
        let headers = headers.map_err(|_| client_error(HttpFailure::Header))?;
        let mut request = HttpRequest::new(method, self.url.clone());
        request.headers = self.headers.clone().with(headers);
        request.accept = JSON_OR_EVENT_STREAM.into();
        request.connect = CONNECT_TIMEOUT;
        request.timeout = SHORT_TIMEOUT;
        // A stream has no size limit; its rate and its messages have.
        request.max_bytes = usize::MAX;
        // A redirect would send the session and the key to an address that the pack does not name.
        request.redirects_max = Some(0);
        Ok(request)
    }

    async fn send(&self, request: HttpRequest) -> Result<StreamingResponse, Error> {
        let sent = self.dialer.send_streaming(request).await;
        sent.map_err(client_error)
    }

    fn events(&self, body: StreamingResponse) -> BoxStream<'static, Result<Sse, SseError>> {
        let events = EventBody {
            body,
            chunk: Bytes::new(),
            reader: SseReader::new(SseLimits::per_event(MESSAGE_BYTES_MAX)),
            health: Arc::clone(&self.health),
            intake: Arc::clone(&self.intake),
        };
        try_unfold(events, |mut events| async {
            let event = events.next().await;
            let event = event.map_err(|failure| SseError::Body(Box::new(failure)))?;
            Ok(event.map(|event| (event, events)))
        })
        .boxed()
    }

    /// A whole body, which is one message.
    async fn message(&self, mut body: StreamingResponse) -> Result<Bytes, HttpFailure> {
        let mut message = BytesMut::new();
        while let Some(chunk) = body.next().await {
            let chunk = chunk?;
            self.health.receive(chunk.len())?;
            if message.len() + chunk.len() > MESSAGE_BYTES_MAX {
                return Err(self.health.fail(ConnectionFault::MessageTooLarge).into());
            }
            message.extend_from_slice(&chunk);
        }
        Ok(message.freeze())
    }

    /// The pause before the next stream of the server's own messages.
    fn stream_pause(&self) -> Duration {
        match &mut *self.stream_restarts.lock() {
            Some(restarts) => restarts.next_pause(),
            first => {
                *first = Some(RestartPolicy::default());
                Duration::ZERO
            }
        }
    }
}

/// A response body that is an event stream.
struct EventBody {
    body: StreamingResponse,
    /// Received and not parsed.
    chunk: Bytes,
    reader: SseReader,
    health: Arc<ConnectionHealth>,
    intake: Arc<MessageIntake>,
}

impl EventBody {
    /// The next block with a field; comments are skipped.
    async fn next(&mut self) -> Result<Option<Sse>, HttpFailure> {
        loop {
            let mut input = &self.chunk[..];
            while let Some(block) =
                self.reader
                    .next_block(&mut input)
                    .map_err(|error| match error {
                        turnwire_dial::SseError::Utf8 => HttpFailure::Events(error),
                        _ => self.health.fail(ConnectionFault::MessageTooLarge).into(),
                    })?
            {
                if block != SseBlock::default() {
                    let data = block.data.and_then(|data| {
                        let reduced = self.intake.reduce(data.as_bytes())?;
                        String::from_utf8(reduced.into_owned()).ok()
                    });
                    let event = Sse {
                        event: block.event.map(str::to_owned),
                        data,
                        id: block.id.map(str::to_owned),
                        retry: block.retry_ms,
                    };
                    let parsed = self.chunk.len() - input.len();
                    self.chunk.advance(parsed);
                    return Ok(Some(event));
                }
            }
            match self.body.next().await {
                Some(chunk) => self.chunk = chunk?,
                None => return Ok(None),
            }
            self.health.receive(self.chunk.len())?;
        }
    }
}

impl StreamableHttpClient for HttpTransport {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let mut request = self.request(HttpMethod::Post, session_id.as_deref(), None, &headers)?;
        request.timeout = POST_TIMEOUT;
        request.body = Some(serde_json::to_vec(&message)?.into());
        let body = self.send(request).await?;
        let status = body.status();
        if session_id.is_some() && status == 400 {
            // A ping is always valid, so 400 is about its session: many servers answer so, instead
            // of 404, for a session from before their restart.
            if is_ping(&message) {
                return Err(StreamableHttpError::SessionExpired);
            }
            self.health.request_probe();
        }
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        let is_success = (200..300).contains(&status);
        if matches!(status, 202 | 204) || (!is_request && is_success) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let new_session_id = body.header(SESSION_ID).map(str::to_owned);
        let content_type = body.content_type();
        if is_success && content_type == EVENT_STREAM {
            let events = self.events(body);
            return Ok(StreamableHttpPostResponse::Sse(events, new_session_id));
        }
        let is_expired = status == 404 && session_id.is_some();
        let status_error = || match is_expired {
            true => StreamableHttpError::SessionExpired,
            false => HttpStatusError::new(status, None).into(),
        };
        if content_type != JSON {
            return Err(match is_success {
                true => StreamableHttpError::UnexpectedContentType(None),
                false => status_error(),
            });
        }
        let body = self.message(body).await.map_err(client_error)?;
        let reduced = self.intake.reduce(&body).unwrap_or_default();
        match serde_json::from_slice::<ServerJsonRpcMessage>(&reduced) {
            Ok(response) if is_success => {
                Ok(StreamableHttpPostResponse::Json(response, new_session_id))
            }
            // Some servers send the error of a message with an error status. Under 404 an error
            // without the id of a message is about the session.
            Ok(JsonRpcMessage::Error(error)) if error.id.is_some() || !is_expired => {
                let response = error_response(error, &message);
                Ok(StreamableHttpPostResponse::Json(response, new_session_id))
            }
            Err(_) if is_success => Err(StreamableHttpError::UnexpectedServerResponse(
                "not a message".into(),
            )),
            Ok(_) | Err(_) => Err(status_error()),
        }
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let request = self.request(HttpMethod::Delete, Some(&session_id), None, &headers)?;
        let body = self.send(request).await?;
        match body.status() {
            // A server need not support the end of a session.
            200..300 | 404 | 405 => Ok(()),
            status => Err(HttpStatusError::new(status, None).into()),
        }
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let last_event_id = last_event_id.as_deref();
        let session_id = session_id.as_deref();
        let mut request = self.request(HttpMethod::Get, session_id, last_event_id, &headers)?;
        request.accept = EVENT_STREAM.into();
        // A server that ends its streams at once would otherwise be asked as fast as it answers.
        let pause = match last_event_id {
            Some(_) => RESUME_PAUSE,
            None => self.stream_pause(),
        };
        tokio::time::sleep(pause).await;
        let body = self.send(request).await?;
        match body.status() {
            200..300 if body.content_type() == EVENT_STREAM => {
                if last_event_id.is_none() {
                    let mut restarts = self.stream_restarts.lock();
                    restarts.get_or_insert_default().connected();
                }
                Ok(self.events(body))
            }
            200..300 => Err(StreamableHttpError::UnexpectedContentType(None)),
            405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => Err(HttpStatusError::new(status, None).into()),
        }
    }
}

/// An error as the response to `message`: a server that rejects a message before it is parsed
/// cannot name its id.
fn error_response(error: JsonRpcError, message: &ClientJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        JsonRpcMessage::Request(message)
            if !matches!(message.request, ClientRequest::DiscoverRequest(_)) =>
        {
            ServerJsonRpcMessage::error(error.error, Some(message.id.clone()))
        }
        _ => JsonRpcMessage::Error(error),
    }
}

fn is_ping(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(message)
        if matches!(message.request, ClientRequest::PingRequest(_)))
}
