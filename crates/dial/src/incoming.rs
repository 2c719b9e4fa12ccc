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

/// An answer whose body is still to come, whatever its status: a redirect is an answer and is not
/// followed. As a stream it gives the body's pieces, and after the first error nothing more.
/// Dropping it before the end closes the connection at once.
pub struct Incoming {
    status: u16,
    headers: HeaderMap,
    body: Option<Body>,
}

type Body = Pin<Box<dyn Stream<Item = Result<Bytes, DialError>> + Send>>;

impl Incoming {
    pub(crate) fn new(mut response: Response, judge: fn(reqwest::Error) -> DialError) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            body: Some(Box::pin(response.bytes_stream().map_err(judge))),
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
}

impl Stream for Incoming {
    type Item = Result<Bytes, DialError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let next = std::task::ready!(body.as_mut().poll_next(context));
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
