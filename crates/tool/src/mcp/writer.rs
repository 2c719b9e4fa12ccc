//! The way to a server's standard input, which does not wait for ever: a server that takes nothing
//! of what it is sent would have all of it held here.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

use crate::mcp::meter::{Flood, Meter, TAKE_MAX};

/// Writes to `inner` and ends with an error when it takes nothing for too long.
pub(crate) struct Patient<W> {
    inner: W,
    meter: Arc<Meter>,
    /// Runs while something waits to be taken.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<W> Patient<W> {
    pub(crate) fn new(inner: W, meter: &Arc<Meter>) -> Self {
        Self {
            inner,
            meter: Arc::clone(meter),
            waits: None,
        }
    }

    /// What `given` is, now that it may have waited too long.
    fn within<T>(
        &mut self,
        context: &mut Context<'_>,
        given: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if given.is_ready() {
            self.waits = None;
            return given;
        }
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(TAKE_MAX)));
        match waits.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::other(self.meter.end(Flood::Deaf)))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Patient<W> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let given = Pin::new(&mut this.inner).poll_write(context, bytes);
        this.within(context, given)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let given = Pin::new(&mut this.inner).poll_flush(context);
        this.within(context, given)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let given = Pin::new(&mut this.inner).poll_shutdown(context);
        this.within(context, given)
    }
}
