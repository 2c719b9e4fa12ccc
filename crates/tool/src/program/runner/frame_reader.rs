//! Reads the frames of a guard.

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::program::guard::frame::{GuardFrame, HEAD_BYTES};

/// Parses frames. [`Self::next`] is cancel safe.
pub(super) struct GuardFrameReader<R> {
    source: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> GuardFrameReader<R> {
    pub(super) fn new(source: R) -> Self {
        let buffer = BytesMut::new();
        Self { source, buffer }
    }

    /// The next frame; `None` at the end, or after bytes that are not a frame.
    pub(super) async fn next(&mut self) -> Option<GuardFrame> {
        loop {
            if let Some(head) = self.buffer.first_chunk::<HEAD_BYTES>() {
                let (tag, length) = GuardFrame::head(*head)?;
                if self.buffer.len() >= HEAD_BYTES + length {
                    self.buffer.advance(HEAD_BYTES);
                    return GuardFrame::read(tag, self.buffer.split_to(length).to_vec());
                }
            }
            if self.source.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
        }
    }
}
