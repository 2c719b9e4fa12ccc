//! The rules of the carrier, over a pipe in memory with a scripted wire and a paused clock.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::super::phase::ServerPhase;
use super::Carrier;
use super::close::CloseReason;
use super::cursor::Backlog;
use super::event_stream::EventStream;
use super::framing::{ByteStream, Framing};
use super::pending::{EventCount, PendingWrites};
use super::websocket::{WebSocket, header};
use super::wire::{Limits, Wire};

const LAG_MAX: u64 = 10;
const WRITE_DEADLINE: Duration = Duration::from_secs(10);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// What the pipe holds for a client that does not read.
const PIPE_BYTES: usize = 64;

impl ByteStream for DuplexStream {
    fn poll_readable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn discard_unsent(&self) {}
}

/// The frames of a wire and what the carrier did with them.
#[derive(Default)]
struct Script {
    queue: VecDeque<Bytes>,
    newest: u64,
    sent: u64,
    is_catching_up: bool,
    is_last: bool,
    closing: Option<(CloseReason, u64)>,
}

/// One connection under test.
#[derive(Clone, Default)]
struct Connection {
    script: Arc<Mutex<Script>>,
    phase: Arc<ServerPhase>,
    waker: Arc<AtomicWaker>,
}

struct ScriptedWire<F>(Connection, PhantomData<fn() -> F>);

impl<F: Framing> Wire for ScriptedWire<F> {
    type Framing = F;
    type Tally = EventCount;
    const OPEN_CONNECTIONS: &'static str = "test.open";

    fn phase(&self) -> &ServerPhase {
        &self.0.phase
    }

    fn limits(&self) -> Limits {
        Limits {
            lag_max: LAG_MAX,
            write_deadline: WRITE_DEADLINE,
        }
    }

    fn backlog(&self) -> Backlog {
        let script = self.0.script.lock();
        Backlog {
            newest: script.newest,
            has_more: !script.queue.is_empty(),
            lag: script.queue.len() as u64,
            is_bounded: !script.is_catching_up,
            has_ended: false,
        }
    }

    async fn fill(&mut self, pending: &mut PendingWrites<EventCount>) -> Result<bool, CloseReason> {
        let frame = self.0.script.lock().queue.pop_front();
        Ok(frame
            .map(|frame| pending.push(frame, EventCount(1)))
            .is_some())
    }

    fn is_complete(&self) -> bool {
        let script = self.0.script.lock();
        script.is_last && script.queue.is_empty()
    }

    fn idle_close(&self) -> Option<CloseReason> {
        None
    }

    fn heartbeat_interval(&self) -> Option<Duration> {
        Some(HEARTBEAT)
    }

    fn heartbeat(&mut self, pending: &mut PendingWrites<EventCount>) -> Result<(), CloseReason> {
        pending.push_control(Bytes::from_static(b": ka"));
        Ok(())
    }

    async fn receive(
        &mut self,
        _: F::Inbound,
        _: &mut PendingWrites<EventCount>,
    ) -> Result<(), CloseReason> {
        Ok(())
    }

    fn record_sent(&mut self, tally: &EventCount) {
        self.0.script.lock().sent += tally.0 as u64;
    }

    fn closing(&mut self, reason: CloseReason, _: &mut PendingWrites<EventCount>) {
        let mut script = self.0.script.lock();
        script.closing = Some((reason, script.sent));
    }
}

impl Connection {
    fn run<F: Framing + 'static>(&self, framing: F) -> JoinHandle<()> {
        let wire = ScriptedWire(self.clone(), PhantomData);
        let writes = PendingWrites::new();
        let carrier = Carrier::new(wire, framing, writes, self.waker.clone(), None);
        tokio::spawn(carrier.run())
    }

    /// Publishes frames of 20 bytes.
    fn publish(&self, count: usize) {
        self.publish_frame(count, Bytes::from_static(b"12345678901234567890"));
    }

    fn publish_frame(&self, count: usize, frame: Bytes) {
        let mut script = self.script.lock();
        script.newest += count as u64;
        script.queue.extend((0..count).map(|_| frame.clone()));
        drop(script);
        self.waker.wake();
    }

    fn closing(&self) -> Option<CloseReason> {
        self.script.lock().closing.map(|(reason, _)| reason)
    }
}

/// An event stream over a pipe, and the client's end of it.
fn event_stream() -> (Connection, JoinHandle<()>, DuplexStream) {
    let (server, client) = duplex(PIPE_BYTES);
    let connection = Connection::default();
    let task = connection.run(EventStream(server));
    (connection, task, client)
}

async fn read(client: &mut DuplexStream, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    client.read_exact(&mut buffer).await.expect("bytes");
    buffer
}

#[tokio::test(start_paused = true)]
async fn slow_client_is_closed_at_the_lag_bound() {
    let (connection, task, mut client) = event_stream();
    // Three frames and a part of the fourth fit into the pipe; the rest is within the bound.
    connection.publish(4 + LAG_MAX as usize - 1);
    sleep(WRITE_DEADLINE / 2).await;
    assert_eq!(connection.closing(), None);
    connection.publish(1);
    timeout(Duration::from_millis(1), task)
        .await
        .expect("closed before the write deadline")
        .expect("a task");
    assert_eq!(connection.closing(), Some(CloseReason::TooSlow));
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.expect("an end");
    assert_eq!(rest.len(), PIPE_BYTES, "nothing more is written");
}

#[tokio::test(start_paused = true)]
async fn client_in_a_burst_may_lag_for_a_moment() {
    let (connection, _task, mut client) = event_stream();
    connection.publish(4 + 2 * LAG_MAX as usize);
    sleep(super::BLOCKED_MIN / 2).await;
    assert_eq!(connection.closing(), None);
    read(&mut client, 20 * (4 + 2 * LAG_MAX as usize)).await;
    sleep(WRITE_DEADLINE).await;
    assert_eq!(connection.closing(), None);
}

#[tokio::test(start_paused = true)]
async fn blocked_socket_is_closed_at_the_write_deadline() {
    let (connection, task, mut client) = event_stream();
    connection.script.lock().is_catching_up = true;
    connection.publish(2 * LAG_MAX as usize);
    sleep(WRITE_DEADLINE - Duration::from_millis(1)).await;
    assert_eq!(connection.closing(), None, "the lag bound does not apply");
    // A client that takes anything has the whole time again.
    read(&mut client, 1).await;
    let unblocked_at = Instant::now();
    task.await.expect("a task");
    assert_eq!(connection.closing(), Some(CloseReason::TooSlow));
    let elapsed = unblocked_at.elapsed();
    assert!(elapsed >= WRITE_DEADLINE && elapsed < WRITE_DEADLINE + Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn heartbeat_follows_silence_and_not_traffic() {
    let (connection, _task, mut client) = event_stream();
    let opened_at = Instant::now();
    assert_eq!(read(&mut client, 4).await, b": ka");
    assert_eq!(opened_at.elapsed().as_secs(), HEARTBEAT.as_secs());
    sleep(HEARTBEAT / 2).await;
    connection.publish(1);
    assert!(read(&mut client, 20).await.starts_with(b"123"));
    let sent_at = Instant::now();
    assert_eq!(read(&mut client, 4).await, b": ka");
    assert_eq!(sent_at.elapsed().as_secs(), HEARTBEAT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn stopped_server_delivers_before_it_closes() {
    let (connection, task, mut client) = event_stream();
    connection.publish(5);
    sleep(Duration::from_millis(1)).await;
    connection.phase.drain();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(connection.closing(), None);
    connection.phase.stop();
    let mut received = Vec::new();
    client.read_to_end(&mut received).await.expect("an end");
    assert_eq!(received.len(), 100);
    drop(client);
    task.await.expect("a task");
    let closing = connection.script.lock().closing;
    assert_eq!(closing, Some((CloseReason::Draining, 5)));
}

#[tokio::test(start_paused = true)]
async fn complete_stream_closes_after_its_last_frame() {
    let (connection, task, mut client) = event_stream();
    connection.script.lock().is_last = true;
    connection.publish(2);
    assert_eq!(read(&mut client, 40).await.len(), 40);
    // The server waits for the client's end, but not for long.
    let read_at = Instant::now();
    task.await.expect("a task");
    assert_eq!(read_at.elapsed().as_secs(), 2);
    let closing = connection.script.lock().closing;
    assert_eq!(closing, Some((CloseReason::Complete, 2)));
}

#[tokio::test(start_paused = true)]
async fn client_that_leaves_ends_the_stream() {
    let (connection, task, client) = event_stream();
    drop(client);
    task.await.expect("a task");
    assert_eq!(connection.closing(), Some(CloseReason::PeerGone));
}

#[tokio::test(start_paused = true)]
async fn slow_websocket_gets_a_close_frame_after_its_partial_frame() {
    let (server, client) = duplex(PIPE_BYTES);
    let socket = WebSocket::new(server, Bytes::new(), 1024).await;
    let connection = Connection::default();
    let task = connection.run(socket);
    let mut frame = Vec::new();
    header::text(b"12345678901234567890", &mut frame);
    connection.publish_frame(3 + 2 * LAG_MAX as usize, frame.into());
    sleep(super::BLOCKED_MIN * 2).await;
    assert_eq!(connection.closing(), Some(CloseReason::TooSlow));
    let mut client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
    let mut texts = 0;
    let close = loop {
        match client.next().await {
            Some(Ok(Message::Text(text))) => {
                assert_eq!(text.as_str(), "12345678901234567890");
                texts += 1;
            }
            Some(Ok(Message::Close(Some(close)))) => break close,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(texts, PIPE_BYTES.div_ceil(22), "the rest is dropped");
    assert_eq!(u16::from(close.code), 1008);
    assert!(close.reason.contains("client_too_slow"), "{}", close.reason);
    // The client answers the close, and the server sees it.
    let closed = client.next();
    assert!(!matches!(closed.await, Some(Ok(_))));
    task.await.expect("a task");
}

#[tokio::test(start_paused = true)]
async fn pong_follows_the_frame_at_hand() {
    let (server, client) = duplex(PIPE_BYTES);
    let socket = WebSocket::new(server, Bytes::new(), 1024).await;
    let connection = Connection::default();
    let _task = connection.run(socket);
    let mut frame = Vec::new();
    header::text(&[b'x'; 3 * PIPE_BYTES], &mut frame);
    connection.publish_frame(1, frame.into());
    sleep(Duration::from_millis(1)).await;
    let mut client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
    let ping = Message::Ping(Bytes::from_static(b"here"));
    futures_util::SinkExt::send(&mut client, ping)
        .await
        .expect("sent");
    let first = client.next().await.expect("a message").expect("a frame");
    assert_eq!(first.into_data().len(), 3 * PIPE_BYTES);
    let second = client.next().await.expect("a message").expect("a frame");
    assert_eq!(second, Message::Pong(Bytes::from_static(b"here")));
    let idle = timeout(HEARTBEAT / 2, pending::<()>());
    assert!(idle.await.is_err() && connection.closing().is_none());
}
