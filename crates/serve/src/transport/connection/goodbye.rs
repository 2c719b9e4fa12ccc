//! The last frames of a connection: what was half written, the close, the client's answer.

use std::future::poll_fn;
use std::task::Poll;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use turnwire_event::metric;
use turnwire_wire::session::Close;

use super::{CLOSING, Connection, Step};

impl Connection {
    /// Ends the connection with a close frame, if the socket takes it in time.
    pub(super) async fn close(&mut self, close: Close) {
        let behind = match (&self.subscription, &self.live) {
            (Some(subscription), Ok(live)) => subscription.behind(live),
            _ => 0,
        };
        if close == Close::TooSlow {
            metrics::counter!(metric::WS_SLOW_CLIENT_CLOSED_TOTAL).increment(1);
            metrics::counter!(metric::WS_FRAME_DROPPED_TOTAL)
                .increment(behind + self.out.events() as u64);
            self.warn("client_too_slow");
        }
        if let Some(watcher) = self
            .subscription
            .take()
            .and_then(|subscription| subscription._watcher)
            && close == Close::Draining
        {
            watcher.leave_quietly();
        }
        let deadline = self.streams.options.write_deadline;
        let say_goodbye = async {
            if !self.finish().await {
                return;
            }
            let frame = CloseFrame {
                code: close.code().into(),
                reason: close.reason_json().into(),
            };
            if self.socket.send(Message::Close(Some(frame))).await.is_err() {
                return;
            }
            // Reading on keeps the kernel from resetting the connection under the client's feet.
            let drained = async { while let Some(Ok(_)) = self.socket.next().await {} };
            let _ = tokio::time::timeout(CLOSING, drained).await;
        };
        let _ = tokio::time::timeout(deadline, say_goodbye).await;
    }

    /// Answers the client's close. The library has the answer ready and sends it when it is next
    /// flushed.
    pub(super) async fn answer_close(&mut self) {
        let answer = async {
            if self.finish().await {
                let _ = self.socket.flush().await;
            }
        };
        let _ = tokio::time::timeout(CLOSING, answer).await;
    }

    /// Writes the rest of a frame that is half written and forgets what is behind it. False if
    /// the socket failed.
    async fn finish(&mut self) -> bool {
        self.out.cut();
        poll_fn(|cx| match self.poll_write(cx) {
            Poll::Ready(Step::Failed) => Poll::Ready(false),
            _ if self.out.is_empty() => Poll::Ready(true),
            // Blocked for the first time: asked again, so that the socket wakes us.
            Poll::Ready(_) => match self.poll_write(cx) {
                Poll::Ready(Step::Failed) => Poll::Ready(false),
                _ => Poll::Pending,
            },
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}
