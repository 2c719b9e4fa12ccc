//! An answer that comes in pieces. Its head is here; its body is read from the socket only when
//! somebody asks for the next piece, so that a slow reader slows the sender down.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use reqwest::Response;
use reqwest::header::HeaderMap;

use crate::error::DialError;
use crate::request::media_type;

/// An answer whose body is still to come, whatever its status. As a stream it gives the body's pieces, and after the first error nothing more.
/// Dropping it before the end closes the connection at once.
pub struct Incoming {
    status: u16,
    headers: HeaderMap,
    body: Option<Body>,
    /// Bytes that may come, and those that still may.
    max_bytes: usize,
    left: usize,
}

type Body = Pin<Box<dyn Stream<Item = Result<Bytes, DialError>> + Send>>;

impl Incoming {
    pub(crate) fn new(mut response: Response, judge: fn(reqwest::Error) -> DialError) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            body: Some(Box::pin(response.bytes_stream().map_err(judge))),
            max_bytes: usize::MAX,
            left: usize::MAX,
        }
    }

    /// The same, whose body ends with an error at the first byte too many.
    pub(crate) fn at_most(self, max_bytes: usize) -> Self {
        Self {
            max_bytes,
            left: max_bytes,
            ..self
        }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

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

impl Stream for Incoming {
    type Item = Result<Bytes, DialError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let mut next = std::task::ready!(body.as_mut().poll_next(context));
        if let Some(Ok(chunk)) = &next {
            match self.left.checked_sub(chunk.len()) {
                Some(left) => self.left = left,
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

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
