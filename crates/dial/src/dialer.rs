//! The [`Dialer`]: one HTTP client for the whole process, so that connections are reused.
//!
//! A response arrives complete, within its time and size limits, or as a stream that is read at the
//! speed of the caller. The dialer follows redirects itself, up to
//! [`HttpRequest::redirects_max`].

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};

use crate::allow::AllowRule;
use crate::connect::{ConnectTimedOut, ConnectTimeoutService, with_connect_timeout};
use crate::error::DialError;
use crate::headers::RequestHeaders;
use crate::incoming::StreamingResponse;
use crate::redirect::{check_url, follow_redirect};
use crate::request::{HttpMethod, HttpRequest, HttpResponse};
use crate::resolver::{AddressNotAllowed, GuardedResolver, HostLookup, SystemResolver};

/// Idle connections kept per host: enough for steady traffic, not for a burst.
const IDLE_CONNECTIONS_MAX: usize = 32;
/// Shorter than the timeout of common servers, so that a request seldom gets a closing connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Settings of a [`Dialer`].
#[derive(Clone, Debug, Default)]
pub struct DialerOptions {
    /// Hosts and networks that requests may reach although they are not public.
    pub allow: Vec<AllowRule>,
}

/// Limits of one [`Dialer::post_json`] request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseLimits {
    /// From the start to the last byte: name resolution, connection, headers and body together.
    pub timeout: Duration,
    /// The size limit of the response body.
    pub max_bytes: usize,
}

/// A complete response of any status. Redirects are returned, not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonResponse {
    /// The HTTP status code.
    pub status: u16,
    /// At most [`ResponseLimits::max_bytes`] bytes.
    pub body: Bytes,
}

/// Sends guarded HTTP requests. Clones share the connection pool.
#[derive(Clone)]
pub struct Dialer {
    client: Client,
    allow: Arc<[AllowRule]>,
    lookup: Arc<dyn HostLookup>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("allow", &self.allow)
            .finish_non_exhaustive()
    }
}

impl Dialer {
    /// A dialer that uses the resolver of the operating system.
    pub fn new(options: DialerOptions) -> Result<Self, DialError> {
        Self::with_lookup(options, Arc::new(SystemResolver))
    }

    fn with_lookup(options: DialerOptions, lookup: Arc<dyn HostLookup>) -> Result<Self, DialError> {
        Self::build(options.allow.into(), lookup, None)
    }

    /// A dialer like this one, with its own connections, that identifies itself to servers that ask
    /// for a certificate. `pem` has the certificate, the intermediate ones after it, and the private
    /// key.
    pub fn with_client_certificate(&self, pem: &[u8]) -> Result<Self, DialError> {
        let identity = Self::identity(pem)?;
        let (allow, lookup) = (Arc::clone(&self.allow), Arc::clone(&self.lookup));
        Self::build(allow, lookup, Some(identity))
    }

    /// Checks whether [`Dialer::with_client_certificate`] can use `pem`.
    pub fn check_client_certificate(pem: &[u8]) -> Result<(), DialError> {
        Self::identity(pem).map(|_| ())
    }

    fn identity(pem: &[u8]) -> Result<reqwest::Identity, DialError> {
        reqwest::Identity::from_pem(pem).map_err(|_| DialError::Setup)
    }

    fn build(
        allow: Arc<[AllowRule]>,
        lookup: Arc<dyn HostLookup>,
        identity: Option<reqwest::Identity>,
    ) -> Result<Self, DialError> {
        // The HTTP client takes TLS from the default provider of the process. The first dialer
        // installs it; later calls fail, which is harmless.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let resolver = GuardedResolver::new(Arc::clone(&lookup), Arc::clone(&allow));
        let client = Client::builder()
            .dns_resolver(resolver)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .http1_only()
            .connector_layer(tower::layer::layer_fn(ConnectTimeoutService))
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .user_agent(concat!("turnwire/", env!("CARGO_PKG_VERSION")));
        let client = match identity {
            Some(identity) => client.identity(identity).build(),
            None => client.build(),
        };
        client
            .map(|client| Self {
                client,
                allow,
                lookup,
            })
            .map_err(|error| {
                tracing::error!(%error, "the HTTP client could not be created");
                DialError::Setup
            })
    }

    /// Checks whether a request to `url` may be sent, before its host name is resolved.
    pub fn check_url(url: &Url) -> Result<(), DialError> {
        check_url(url)
    }

    /// Sends `request`, follows redirects, and waits for the complete response. Dropping the future
    /// closes the connection.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, DialError> {
        let (timeout, max_bytes) = (request.timeout, request.max_bytes);
        let exchange = async {
            let (mut response, redirected) = self.send_hops(request).await?;
            let status = response.status().as_u16();
            let headers = std::mem::take(response.headers_mut());
            Ok(HttpResponse {
                status,
                body: collect(response, max_bytes).await?,
                redirected,
                headers,
            })
        };
        let response = tokio::time::timeout(timeout, exchange).await;
        response.unwrap_or(Err(DialError::Timeout))
    }

    /// Sends `request`, follows redirects, and waits for the head of the response; the body is read
    /// when the [`StreamingResponse`] is polled. Dropping the future or the response closes the
    /// connection.
    pub async fn send_streaming(
        &self,
        request: HttpRequest,
    ) -> Result<StreamingResponse, DialError> {
        let (timeout, max_bytes) = (request.timeout, request.max_bytes);
        let response = tokio::time::timeout(timeout, self.send_hops(request)).await;
        let (response, _) = response.unwrap_or(Err(DialError::Timeout))?;
        Ok(StreamingResponse::new(response, max_bytes, to_dial_error))
    }

    /// The response of the last hop, and true if its URL differs from the first.
    async fn send_hops(&self, mut request: HttpRequest) -> Result<(Response, bool), DialError> {
        check_url(&request.url)?;
        let first = request.url.clone();
        loop {
            let response = with_connect_timeout(request.connect, self.send_once(&request)).await?;
            let status = response.status().as_u16();
            let location = response.headers().get(LOCATION);
            let location = location.map(|value| value.as_bytes());
            if !follow_redirect(&mut request, status, location, &first, &self.allow)? {
                check_not_encoded(&response)?;
                return Ok((response, request.url != first));
            }
        }
    }

    async fn send_once(&self, request: &HttpRequest) -> Result<Response, DialError> {
        let mut request_builder = self
            .client
            .request(request.method.into(), request.url.clone())
            .headers(request.headers.clone().into_map())
            .header(ACCEPT, &*request.accept)
            .header(ACCEPT_ENCODING, "identity");
        if let Some(body) = &request.body {
            request_builder = request_builder
                .header(CONTENT_TYPE, &*request.content_type)
                .body(body.clone());
        }
        request_builder.send().await.map_err(to_dial_error)
    }

    /// Posts `body` as JSON with `headers` and waits for the complete response, which may be a
    /// redirect: it is not followed, so that no header reaches another host. Dropping the future
    /// closes the connection.
    pub async fn post_json(
        &self,
        url: &Url,
        headers: RequestHeaders,
        body: impl Into<Bytes>,
        limits: ResponseLimits,
    ) -> Result<JsonResponse, DialError> {
        let request = HttpRequest {
            headers,
            body: Some(body.into()),
            // The timeout of the whole request is the only one.
            connect: Duration::MAX,
            timeout: limits.timeout,
            max_bytes: limits.max_bytes,
            redirects_max: None,
            ..HttpRequest::new(HttpMethod::Post, url.clone())
        };
        let HttpResponse { status, body, .. } = self.send(request).await?;
        Ok(JsonResponse { status, body })
    }
}

/// Rejects a compressed response: its size after decompression is unknown.
fn check_not_encoded(response: &Response) -> Result<(), DialError> {
    let encodings = response.headers().get_all(CONTENT_ENCODING);
    let is_identity = encodings
        .iter()
        .all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"));
    is_identity
        .then_some(())
        .ok_or(DialError::UnexpectedEncoding)
}

/// Reads the body and fails at the first byte above the limit, whatever the headers declare.
async fn collect(mut response: Response, max_bytes: usize) -> Result<Bytes, DialError> {
    let too_large = DialError::TooLarge { max_bytes };
    if response.content_length().unwrap_or(0) > max_bytes as u64 {
        return Err(too_large);
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(to_dial_error)? {
        if body.len() + chunk.len() > max_bytes {
            return Err(too_large);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Classifies an error of the HTTP client. Only the server's log contains the cause.
fn to_dial_error(error: reqwest::Error) -> DialError {
    let error = error.without_url();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if inner.is::<AddressNotAllowed>() {
            tracing::debug!("a host name resolved to an address that is not allowed");
            return DialError::Refused;
        }
        if inner.is::<ConnectTimedOut>() {
            return DialError::ConnectTimeout;
        }
        cause = inner.source();
    }
    tracing::debug!(?error, "request failed");
    match error.is_timeout() {
        true => DialError::Timeout,
        false => DialError::Unreachable,
    }
}

#[cfg(test)]
mod tests;
