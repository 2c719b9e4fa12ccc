//! What a guard tells, frame by frame.

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::guard::frame::{Frame, HEAD_BYTES};

/// Frames out of bytes, also when waiting for one is given up in between.
pub(super) struct Frames<R> {
    from: R,
    read: BytesMut,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(from: R) -> Self {
        let read = BytesMut::new();
        Self { from, read }
    }

    /// The next one; none at the end, or when what comes is none.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(head) = self.read.first_chunk::<HEAD_BYTES>() {
                let (tag, length) = Frame::head(*head).ok()?;
                if self.read.len() >= HEAD_BYTES + length {
                    self.read.advance(HEAD_BYTES);
                    return Frame::read(tag, self.read.split_to(length).to_vec()).ok();
                }
            }
            if self.from.read_buf(&mut self.read).await.ok()? == 0 {
                return None;
            }
        }
    }
}
