//! A response whose body is a stream. The body is read from the socket only when the stream is
//! polled, so that a slow reader slows down the sender.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use reqwest::Response;
use reqwest::header::HeaderMap;

use crate::error::DialError;
use crate::request::media_type;

/// A response of any status whose body is still to be read. The stream yields the chunks of the
/// body and ends after the first error. Dropping it before the end closes the connection at once.
pub struct StreamingResponse {
    status: u16,
    headers: HeaderMap,
    body: Option<Body>,
    /// The size limit of the body, and the number of bytes that may still arrive.
    max_bytes: usize,
    remaining: usize,
}

type Body = Pin<Box<dyn Stream<Item = Result<Bytes, DialError>> + Send>>;

impl StreamingResponse {
    /// The stream fails at the first byte above `max_bytes`.
    pub(crate) fn new(
        mut response: Response,
        max_bytes: usize,
        to_dial_error: fn(reqwest::Error) -> DialError,
    ) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            body: Some(Box::pin(response.bytes_stream().map_err(to_dial_error))),
            max_bytes,
            remaining: max_bytes,
        }
    }

    /// The HTTP status code.
    pub fn status(&self) -> u16 {
        self.status
    }

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

impl Stream for StreamingResponse {
    type Item = Result<Bytes, DialError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let mut next = std::task::ready!(body.as_mut().poll_next(context));
        if let Some(Ok(chunk)) = &next {
            match self.remaining.checked_sub(chunk.len()) {
                Some(remaining) => self.remaining = remaining,
                None => {
                    let max_bytes = self.max_bytes;
                    next = Some(Err(DialError::TooLarge { max_bytes }));
                }
            }
        }
        if !matches!(next, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(next)
    }
}

impl fmt::Debug for StreamingResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingResponse")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
