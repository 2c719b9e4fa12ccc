//! Streamable HTTP: messages of a server over the one door to the network, with its guard. A
//! message is a POST; its answer is JSON, or events that end with the answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, JsonRpcError, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use turnwire_dial::{DialError, Dialer, Headers, Incoming, Method, Request, Url};

use crate::mcp::meter::{Ends, Flood, Gauge, MESSAGE_BYTES_MAX, Meter};
use crate::mcp::streams::Streams;

/// Until there is a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Until the head of an answer to a POST. A server may do the whole work before it, so this is
/// longer than any call; whoever waits for the call has a time of their own.
const HEAD_MAX: Duration = Duration::from_secs(3_600);
/// Until the head of a stream, or the answer to the end of a session.
const SHORT: Duration = Duration::from_secs(10);

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const EITHER: &str = "application/json, text/event-stream";

/// Why a server did not take or give a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Flood(#[from] Flood),
    #[error("a header cannot be sent")]
    Header,
    #[error("HTTP {0}")]
    Status(u16),
}

type Error = StreamableHttpError<Trouble>;

fn trouble(why: impl Into<Trouble>) -> Error {
    StreamableHttpError::Client(why.into())
}

/// Takes up a stream of events again that broke: once, and once a little later if that failed. One
/// that the server ended in peace is opened again after a while. More is the supervisor's. How
/// often one is asked for that is given and breaks is not asked here: see [`Streams`].
#[derive(Debug)]
pub(crate) struct Twice;

impl SseRetryPolicy for Twice {
    fn retry(&self, times: usize) -> Option<Duration> {
        match times {
            0 => Some(Duration::from_secs(5)),
            1 => Some(Duration::from_millis(300)),
            _ => None,
        }
    }
}

/// The HTTP side of one connection.
#[derive(Clone)]
pub(crate) struct Client {
    dialer: Arc<Dialer>,
    url: Url,
    /// Those of the pack; a key may be among them.
    headers: Headers,
    meter: Arc<Meter>,
    streams: Arc<Streams>,
}

impl Client {
    pub(crate) fn new(
        dialer: &Arc<Dialer>,
        url: &Url,
        headers: &Headers,
        meter: &Arc<Meter>,
    ) -> Self {
        Self {
            dialer: Arc::clone(dialer),
            url: url.clone(),
            headers: headers.clone(),
            meter: Arc::clone(meter),
            streams: Arc::default(),
        }
    }

    fn request(
        &self,
        method: Method,
        session_id: Option<&str>,
        event_id: Option<&str>,
        more: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<Request, Error> {
        let more = more
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let own = [(SESSION_ID, session_id), (LAST_EVENT_ID, event_id)];
        let own = own
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let own = Headers::new(more.chain(own)).map_err(|_| trouble(Trouble::Header))?;
        let mut request = Request::new(method, self.url.clone());
        request.headers = self.headers.clone().with(own);
        request.accept = EITHER.into();
        request.connect = CONNECT_MAX;
        request.timeout = SHORT;
        // What a stream may bring in all is no number; what it brings at once is measured.
        request.max_bytes = usize::MAX;
        // A redirect would take the session and the key to a place that nobody named.
        request.redirects_max = 0;
        Ok(request)
    }

    fn events(&self, incoming: Incoming) -> BoxStream<'static, Result<Sse, SseError>> {
        SseStream::from_bytes_stream(measured(incoming, &self.meter)).boxed()
    }

    /// The whole body, which is one message.
    async fn whole(&self, incoming: Incoming) -> Result<Bytes, Trouble> {
        let mut pieces = std::pin::pin!(measured(incoming, &self.meter));
        let mut body = BytesMut::new();
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            if body.len() + piece.len() > MESSAGE_BYTES_MAX {
                let max_bytes = MESSAGE_BYTES_MAX;
                return Err(DialError::TooLarge { max_bytes }.into());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }
}

fn measured(
    incoming: Incoming,
    meter: &Arc<Meter>,
) -> impl Stream<Item = Result<Bytes, Trouble>> + Send + 'static {
    let meter = Arc::clone(meter);
    let mut gauge = Gauge::new(Ends::EmptyLine);
    incoming.map(move |piece| {
        let piece = piece?;
        gauge.take(&piece, &meter)?;
        Ok(piece)
    })
}

impl StreamableHttpClient for Client {
    type Error = Trouble;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let mut request = self.request(Method::Post, session_id.as_deref(), None, &headers)?;
        request.timeout = HEAD_MAX;
        request.body = Some(serde_json::to_vec(&message)?.into());
        let incoming = self.dialer.open(request).await.map_err(trouble)?;
        let status = incoming.status();
        // Nothing is wrong with a ping, so this is of its session: what many servers say of one
        // that they had before they were started again, though it should be 404.
        if session_id.is_some() && status == 400 && is_ping(&message) {
            return Err(StreamableHttpError::SessionExpired);
        }
        let wants_answer = matches!(message, JsonRpcMessage::Request(_));
        if matches!(status, 202 | 204) || (!wants_answer && (200..300).contains(&status)) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let given = incoming.header(SESSION_ID).map(str::to_owned);
        let kind = incoming.content_type();
        let good = (200..300).contains(&status);
        if good && kind == EVENTS {
            return Ok(StreamableHttpPostResponse::Sse(
                self.events(incoming),
                given,
            ));
        }
        if status == 400 && session_id.is_some() {
            self.meter.doubt();
        }
        let is_gone = status == 404 && session_id.is_some();
        let bad = || match is_gone {
            true => StreamableHttpError::SessionExpired,
            false => HttpStatusError::new(status, None).into(),
        };
        if kind != JSON {
            return Err(match good {
                true => StreamableHttpError::UnexpectedContentType(None),
                false => bad(),
            });
        }
        let body = self.whole(incoming).await.map_err(trouble)?;
        let answer = serde_json::from_slice::<ServerJsonRpcMessage>(&body);
        match answer {
            Ok(answer) if good => Ok(StreamableHttpPostResponse::Json(answer, given)),
            // Some servers put the error of a message under a status of their own; one of no
            // message under 404 is of the session.
            Ok(JsonRpcMessage::Error(refused)) if refused.id.is_some() || !is_gone => Ok(
                StreamableHttpPostResponse::Json(mine(refused, &message), given),
            ),
            Err(_) if good => Err(StreamableHttpError::UnexpectedServerResponse(
                "not a message".into(),
            )),
            Ok(_) | Err(_) => Err(bad()),
        }
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let request = self.request(Method::Delete, Some(&session_id), None, &headers)?;
        let incoming = self.dialer.open(request).await.map_err(trouble)?;
        match incoming.status() {
            // A server need not know what a session's end is.
            200..300 | 404 | 405 => Ok(()),
            status => Err(trouble(Trouble::Status(status))),
        }
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session_id: Option<Arc<str>>,
        event_id: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let mut request = self.request(
            Method::Get,
            session_id.as_deref(),
            event_id.as_deref(),
            &headers,
        )?;
        request.accept = EVENTS.into();
        let wait = self.streams.wait(session_id.as_ref(), event_id.is_some());
        tokio::time::sleep(wait).await;
        let incoming = self.dialer.open(request).await.map_err(trouble)?;
        match incoming.status() {
            200..300 if incoming.content_type() == EVENTS => Ok(self.events(incoming)),
            200..300 => Err(StreamableHttpError::UnexpectedContentType(None)),
            405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => Err(HttpStatusError::new(status, None).into()),
        }
    }
}

/// An error as the answer to `message`: a refusal before the message was read cannot name it.
fn mine(refused: JsonRpcError, message: &ClientJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        JsonRpcMessage::Request(asked)
            if !matches!(asked.request, ClientRequest::DiscoverRequest(_)) =>
        {
            ServerJsonRpcMessage::error(refused.error, Some(asked.id.clone()))
        }
        _ => JsonRpcMessage::Error(refused),
    }
}

fn is_ping(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(asked) if matches!(asked.request, ClientRequest::PingRequest(_)))
}
