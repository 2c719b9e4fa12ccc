//! A request and its complete response. URL, headers and body may contain secrets, so debug output
//! shows sizes and times only.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderMap;

use crate::headers::RequestHeaders;

/// The default limit of redirects: enough to fix the scheme, the host and the path.
pub const REDIRECTS_MAX: u8 = 3;

/// The HTTP method of an [`HttpRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpMethod {
    /// Sent without a body after a redirect that changes the method.
    Get,
    /// Becomes [`HttpMethod::Get`] after a redirect with status 301, 302 or 303.
    Post,
    /// Keeps its body across redirects with status 301, 302, 307 and 308.
    Put,
    /// Keeps its body across redirects with status 301, 302, 307 and 308.
    Patch,
    /// Keeps its body across redirects with status 301, 302, 307 and 308.
    Delete,
}

impl From<HttpMethod> for reqwest::Method {
    fn from(method: HttpMethod) -> Self {
        match method {
            HttpMethod::Get => Self::GET,
            HttpMethod::Post => Self::POST,
            HttpMethod::Put => Self::PUT,
            HttpMethod::Patch => Self::PATCH,
            HttpMethod::Delete => Self::DELETE,
        }
    }
}

/// One request. [`HttpRequest::new`] has a default for everything but method and URL.
#[derive(Clone)]
pub struct HttpRequest {
    /// Sent unchanged on the first hop; a redirect may change it.
    pub method: HttpMethod,
    /// The target. The operator is trusted to name an IP address or `localhost` here; the target of
    /// a redirect is not trusted.
    pub url: Url,
    /// Headers besides those that the dialer sets. They are removed when a redirect leads to
    /// another origin.
    pub headers: RequestHeaders,
    /// The value of the `accept` header.
    pub accept: Cow<'static, str>,
    /// The media type of `body`.
    pub content_type: Cow<'static, str>,
    /// The body, or `None` to send none.
    pub body: Option<Bytes>,
    /// The time limit for name resolution, connection and TLS handshake, per hop.
    pub connect: Duration,
    /// The time limit for all hops together: to the last byte of a complete response, to the head
    /// of a streamed one.
    pub timeout: Duration,
    /// The size limit of the response body, complete or streamed.
    pub max_bytes: usize,
    /// The limit of redirects; exceeding it is [`DialError::TooManyRedirects`]. `None` to get a
    /// redirect as the response.
    ///
    /// [`DialError::TooManyRedirects`]: crate::DialError::TooManyRedirects
    pub redirects_max: Option<u8>,
}

impl HttpRequest {
    /// A request without headers and body: 5 s to connect, 30 s in total, 1 MiB, three redirects.
    pub fn new(method: HttpMethod, url: Url) -> Self {
        Self {
            method,
            url,
            headers: RequestHeaders::default(),
            accept: Cow::Borrowed("application/json"),
            content_type: Cow::Borrowed("application/json"),
            body: None,
            connect: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            max_bytes: 1_048_576,
            redirects_max: Some(REDIRECTS_MAX),
        }
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.as_ref().map_or(0, Bytes::len))
            .field("connect", &self.connect)
            .field("timeout", &self.timeout)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

/// A complete response of any status.
#[derive(Clone)]
pub struct HttpResponse {
    /// The HTTP status code.
    pub status: u16,
    /// At most [`HttpRequest::max_bytes`] bytes.
    pub body: Bytes,
    /// True if the response comes from another URL than [`HttpRequest::url`].
    pub redirected: bool,
    pub(crate) headers: HeaderMap,
}

impl HttpResponse {
    /// The value of a header, if present and text. The remote side controls the value: the caller
    /// must validate it and must not show it to users.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The media type of the body in lower case, without parameters; empty if the header is missing.
    pub fn content_type(&self) -> String {
        media_type(self.header("content-type"))
    }
}

/// The media type of a `content-type` header, without parameters.
pub(crate) fn media_type(header: Option<&str>) -> String {
    let kind = header.unwrap_or_default().split(';').next();
    kind.unwrap_or_default().trim().to_ascii_lowercase()
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .field("redirected", &self.redirected)
            .finish_non_exhaustive()
    }
}
