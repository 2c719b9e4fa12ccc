//! The bytes of a server's standard output, measured before anybody holds them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::mcp::meter::{Ends, Gauge, Meter};

/// Reads what `inner` gives and ends with an error at the first byte too many.
pub(crate) struct Measured<R> {
    inner: R,
    gauge: Gauge,
    meter: Arc<Meter>,
}

impl<R> Measured<R> {
    pub(crate) fn new(inner: R, meter: &Arc<Meter>) -> Self {
        Self {
            inner,
            gauge: Gauge::new(Ends::Line),
            meter: Arc::clone(meter),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Measured<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        let came = buffer.filled().get(before..).unwrap_or_default();
        let taken = this.gauge.take(came, &this.meter);
        Poll::Ready(taken.map_err(io::Error::other))
    }
}
