//! A request in general: any method, its own headers, and how much it may use up. What it carries
//! may be a secret in every part, so it shows only how large it is and how long it may take.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderMap;

use crate::headers::Headers;

/// Redirects that are followed where nobody says otherwise: to the right scheme, the right host
/// and the right path.
pub const REDIRECTS_MAX: u8 = 3;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Read.
    Get,
    /// Give and have an answer.
    Post,
    /// Put in its place.
    Put,
    /// Change.
    Patch,
    /// Take away.
    Delete,
}

impl From<Method> for reqwest::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Delete => Self::DELETE,
        }
    }
}

/// One request. [`Request::new`] has a default for everything but method and address.
#[derive(Clone)]
pub struct Request {
    /// What is to be done.
    pub method: Method,
    /// Where to. What the caller writes here is the operator's word: an address in numbers and
    /// `localhost` are let through. Where a redirect leads is nobody's word.
    pub url: Url,
    /// Headers besides those that every request has. None of them follows a redirect to another
    /// origin.
    pub headers: Headers,
    /// What kinds of answer are welcome.
    pub accept: Cow<'static, str>,
    /// The kind of the body, where there is one.
    pub content_type: Cow<'static, str>,
    /// What is sent.
    pub body: Option<Bytes>,
    /// From the first step until there is a connection, for each hop.
    pub connect: Duration,
    /// All hops together, from the first step: to the last byte of an answer that comes whole, to
    /// the head of one that streams.
    pub timeout: Duration,
    /// Bytes of the answer's body, whole or streamed.
    pub max_bytes: usize,
    /// Redirects that are followed; one more is [`crate::DialError::Redirects`].
    pub redirects_max: u8,
}

impl Request {
    /// A request without headers and body: 5 s to connect, 30 s in all, 1 MiB, three redirects.
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: Headers::default(),
            accept: Cow::Borrowed("application/json"),
            content_type: Cow::Borrowed("application/json"),
            body: None,
            connect: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            max_bytes: 1_048_576,
            redirects_max: REDIRECTS_MAX,
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.as_ref().map_or(0, Bytes::len))
            .field("connect", &self.connect)
            .field("timeout", &self.timeout)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

/// What came back, whole, whatever its status.
#[derive(Clone)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
    /// Whether it came from another address than the one that was asked.
    pub moved: bool,
    pub(crate) headers: HeaderMap,
}

impl Reply {
    /// The value of a header, where it is there and is text. The other side wrote it: whoever asks
    /// judges it and shows it to nobody.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What kind of body the other side says it is, in small letters and without parameters;
    /// empty where it does not say.
    pub fn content_type(&self) -> String {
        media_type(self.header("content-type"))
    }
}

/// Of a `content-type`, the part that names the kind.
pub(crate) fn media_type(header: Option<&str>) -> String {
    let kind = header.unwrap_or_default().split(';').next();
    kind.unwrap_or_default().trim().to_ascii_lowercase()
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .field("moved", &self.moved)
            .finish_non_exhaustive()
    }
}
