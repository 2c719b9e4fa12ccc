//! The dialer: one client for the whole process, so that connections are used again. The answer
//! to a request comes whole or not at all, within its time and its bytes, or as a stream that is
//! read as fast as it is asked for. Redirects are followed here, by hand, and only for callers
//! that ask for that.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};

use crate::allow::Allow;
use crate::connect::{Late, Timely, within};
use crate::error::DialError;
use crate::headers::Headers;
use crate::incoming::Incoming;
use crate::redirect::{follow, guard};
use crate::request::{Reply, Request};
use crate::resolver::{Guarded, Lookup, NotAllowed, System};

/// Idle connections kept to one host: what a busy minute uses, not what a burst once did.
const IDLE_MAX: usize = 32;
/// Shorter than servers keep theirs, so that a request seldom meets a connection that is going.
const IDLE_FOR: Duration = Duration::from_secs(15);

/// How a dialer is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Hosts and networks that may be spoken to although they are not public.
    pub allow: Vec<Allow>,
}

/// What one request may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first step to the last byte: resolve, connect, headers and body together.
    pub timeout: Duration,
    /// Bytes of the answer's body.
    pub max_bytes: usize,
}

/// What came back, whatever its status: a redirect is an answer and is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body, whole.
    pub body: Bytes,
}

/// A request whose answer is a stream.
#[derive(Clone)]
pub struct Outgoing {
    /// Where to.
    pub url: Url,
    /// Headers besides those that every request has.
    pub headers: Headers,
    /// The JSON.
    pub body: Bytes,
    /// From the first step until there is a connection: resolve, connect and handshake.
    pub connect: Duration,
    /// From the first step until the head of the answer has come, connecting included.
    pub first_byte: Duration,
}

/// Shows how large it is and how long it may take: the body is what people said, the address and
/// the headers may have a key in them.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .field("connect", &self.connect)
            .field("first_byte", &self.first_byte)
            .finish_non_exhaustive()
    }
}

/// The one way out.
#[derive(Clone, Debug)]
pub struct Dialer {
    client: Client,
    allow: Arc<[Allow]>,
}

impl Dialer {
    /// A dialer that asks the machine's own resolver.
    pub fn new(options: Options) -> Result<Self, DialError> {
        Self::resolving(options, Arc::new(System))
    }

    fn resolving(options: Options, lookup: Arc<dyn Lookup>) -> Result<Self, DialError> {
        let allow: Arc<[Allow]> = options.allow.into();
        // The HTTP client takes TLS from the provider of the process, which the first dialer
        // installs; for later ones it is there already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .dns_resolver(Guarded::new(lookup, Arc::clone(&allow)))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .http1_only()
            .connector_layer(Timely)
            .pool_max_idle_per_host(IDLE_MAX)
            .pool_idle_timeout(IDLE_FOR)
            .user_agent(concat!("turnwire/", env!("CARGO_PKG_VERSION")))
            .build();
        client.map(|client| Self { client, allow }).map_err(|why| {
            tracing::error!(%why, "the HTTP client could not be set up");
            DialError::Setup
        })
    }

    /// Whether a request to `url` may leave, as far as the address alone tells: what a name stands
    /// for is known only when it is called.
    pub fn lets_out(url: &Url) -> Result<(), DialError> {
        guard(url)
    }

    /// Sends `request`, follows where it is sent on, and waits for the whole answer. Dropping the
    /// future cuts the connection.
    pub async fn request(&self, request: Request) -> Result<Reply, DialError> {
        let (timeout, max_bytes) = (request.timeout, request.max_bytes);
        let exchange = async {
            let (mut response, moved) = self.hops(request).await?;
            let status = response.status().as_u16();
            let headers = std::mem::take(response.headers_mut());
            let body = collect(response, max_bytes).await?;
            Ok(Reply {
                status,
                body,
                moved,
                headers,
            })
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(reply) => reply,
            Err(_) => Err(DialError::Timeout),
        }
    }

    /// Sends `request`, follows where it is sent on, and waits for the head of the answer; its
    /// body is read only when it is polled. Dropping the future or what it gives closes the
    /// connection.
    pub async fn open(&self, request: Request) -> Result<Incoming, DialError> {
        let (timeout, max_bytes) = (request.timeout, request.max_bytes);
        let (response, _) = match tokio::time::timeout(timeout, self.hops(request)).await {
            Ok(response) => response?,
            Err(_) => return Err(DialError::Timeout),
        };
        Ok(Incoming::new(response, judge).at_most(max_bytes))
    }

    /// The answer of the last hop, and whether it is another than the first.
    async fn hops(&self, mut request: Request) -> Result<(Response, bool), DialError> {
        guard(&request.url)?;
        let first = request.url.clone();
        loop {
            let response = within(request.connect, self.send(&request)).await?;
            let status = response.status().as_u16();
            let location = response.headers().get(LOCATION);
            let location = location.map(|value| value.as_bytes());
            if !follow(&mut request, status, location, &first, &self.allow)? {
                plain(&response)?;
                return Ok((response, request.url != first));
            }
        }
    }

    async fn send(&self, request: &Request) -> Result<Response, DialError> {
        let mut sent = self
            .client
            .request(request.method.into(), request.url.clone())
            .headers(request.headers.clone().into_map())
            .header(ACCEPT, &*request.accept)
            .header(ACCEPT_ENCODING, "identity");
        if let Some(body) = &request.body {
            sent = sent
                .header(CONTENT_TYPE, &*request.content_type)
                .body(body.clone());
        }
        sent.send().await.map_err(judge)
    }

    /// Posts `body` as JSON and waits for the whole answer. Dropping the future cuts the
    /// connection.
    pub async fn post_json(
        &self,
        url: &Url,
        body: impl Into<Bytes>,
        limits: Limits,
    ) -> Result<Answer, DialError> {
        guard(url)?;
        let exchange = self.exchange(url.clone(), body.into(), limits.max_bytes);
        match tokio::time::timeout(limits.timeout, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(DialError::Timeout),
        }
    }

    /// Posts a request and waits for the head of the answer; its body is a stream of events that
    /// is read only when it is polled. Dropping the future or what it gives closes the connection.
    pub async fn stream(&self, request: Outgoing) -> Result<Incoming, DialError> {
        guard(&request.url)?;
        let (connect, first_byte) = (request.connect, request.first_byte);
        let sent = within(connect, self.posted(request));
        match tokio::time::timeout(first_byte, sent).await {
            Ok(incoming) => incoming,
            Err(_) => Err(DialError::Timeout),
        }
    }

    async fn posted(&self, outgoing: Outgoing) -> Result<Incoming, DialError> {
        let request = self
            .client
            .post(outgoing.url)
            .headers(outgoing.headers.into_map())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .header(ACCEPT_ENCODING, "identity")
            .body(outgoing.body);
        let response = request.send().await.map_err(judge)?;
        plain(&response)?;
        Ok(Incoming::new(response, judge))
    }

    async fn exchange(&self, url: Url, body: Bytes, max_bytes: usize) -> Result<Answer, DialError> {
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .header(ACCEPT_ENCODING, "identity")
            .body(body);
        let response = request.send().await.map_err(judge)?;
        plain(&response)?;
        let status = response.status().as_u16();
        let body = collect(response, max_bytes).await?;
        Ok(Answer { status, body })
    }
}

/// Refuses an answer that would have to be unpacked: how large it gets then is anyone's guess.
fn plain(response: &Response) -> Result<(), DialError> {
    let encodings = response.headers().get_all(CONTENT_ENCODING);
    let plain = encodings
        .iter()
        .all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"));
    if plain {
        Ok(())
    } else {
        Err(DialError::Encoded)
    }
}

/// Reads the body and stops at the first byte too many, whatever the headers promised.
async fn collect(mut response: Response, max_bytes: usize) -> Result<Bytes, DialError> {
    let too_large = DialError::TooLarge { max_bytes };
    let promised = response.content_length().unwrap_or(0);
    if promised > max_bytes as u64 {
        return Err(too_large);
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(judge)? {
        if body.len() + chunk.len() > max_bytes {
            return Err(too_large);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// What went wrong. The cause is told to whoever debugs the server and to nobody else.
fn judge(error: reqwest::Error) -> DialError {
    let error = error.without_url();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if inner.is::<NotAllowed>() {
            tracing::debug!("a name has an address that is not allowed");
            return DialError::Refused;
        }
        if inner.is::<Late>() {
            return DialError::Unconnected;
        }
        cause = inner.source();
    }
    tracing::debug!(why = ?error, "no answer");
    if error.is_timeout() {
        DialError::Timeout
    } else {
        DialError::Unreachable
    }
}

#[cfg(test)]
mod tests;
