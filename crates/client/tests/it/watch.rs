//! A watch against a server that disconnects, rejects, pings and deletes: the subscriptions that the
//! watch sends and the items that it returns.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_async};
use turnwire_client::{Client, Error, SessionWatch, WatchItem, WatchStart};
use turnwire_event::{EpisodeId, Epoch, Position, Seq, SessionId, Ulid};
use turnwire_wire::session::SessionCloseReason;

const SESSION: SessionId = SessionId(Ulid(7));

type Server = WebSocketStream<TcpStream>;

fn at(seq: u64) -> Position {
    Position::persisted(Epoch(1), Seq(seq))
}

fn event(seq: u64, kind: &str) -> Value {
    json!({"type": "event", "event": {
        "id": at(seq), "type": kind, "session_id": SESSION, "turn_id": null, "payload": {}
    }})
}

fn subscribe(since: Option<u64>, snapshot: bool) -> Value {
    json!({
        "type": "subscribe", "filter": "preset:full", "since": since.map(at), "snapshot": snapshot
    })
}

fn ack() -> Value {
    json!({"type": "subscribe_ack", "replay_event_count": 0})
}

/// Starts a server on its own port and a watch of it.
async fn start(start: WatchStart) -> (TcpListener, SessionWatch) {
    start_with(json!("preset:full"), start).await
}

/// Starts a server and a watch with a filter.
async fn start_with(filter: Value, start: WatchStart) -> (TcpListener, SessionWatch) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = Client::new(&format!("http://{address}")).expect("an address");
    (listener, client.watch(SESSION, filter, start))
}

/// Answers one HTTP request to attach.
async fn answer(listener: &TcpListener, status: &str, body: &Value) {
    let path = format!("/sessions/{SESSION}");
    answer_at(listener, &path, status, body).await;
}

/// Answers one HTTP request for `path`.
async fn answer_at(listener: &TcpListener, path: &str, status: &str, body: &Value) {
    let (mut stream, _) = listener.accept().await.expect("a client");
    let mut request = vec![0; 4096];
    let length = stream.read(&mut request).await.expect("a request");
    let head = String::from_utf8_lossy(&request[..length]).into_owned();
    assert!(head.starts_with(&format!("GET {path} HTTP/1.1")), "{head}");
    let body = body.to_string();
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await.expect("an answer");
}

/// Answers the attach request, then accepts the WebSocket that the token is for.
async fn accept(listener: &TcpListener) -> Server {
    answer(listener, "200 OK", &attached()).await;
    let (stream, _) = listener.accept().await.expect("a client");
    accept_async(stream).await.expect("an upgrade")
}

fn attached() -> Value {
    json!({
        "session_id": SESSION, "active_model": "m", "routing_policy_version": "1",
        "workspace_path": null, "parent_session_id": null, "tenant_id": "", "principal": "local",
        "episode_id": EpisodeId(Ulid(1)), "metadata": {}, "cost_so_far_usd": 0.0, "turn_count": 0,
        "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
        "attach_token": "atk_1", "ws_url": "ws://elsewhere/"
    })
}

async fn receive(server: &mut Server) -> Value {
    let frame = server.next().await.expect("a frame").expect("a frame");
    serde_json::from_str(frame.to_text().expect("text")).expect("JSON")
}

async fn send(server: &mut Server, frames: &[Value]) {
    for frame in frames {
        server
            .send(Message::text(frame.to_string()))
            .await
            .expect("sent");
    }
}

async fn close(mut server: Server, close: SessionCloseReason) {
    let frame = CloseFrame {
        code: close.code().into(),
        reason: close.reason_json().into(),
    };
    server.close(Some(frame)).await.expect("closed");
}

/// A short description of the next item of a watch.
async fn next(watch: &mut SessionWatch) -> String {
    match watch.next().await {
        Ok(None) => "end".to_owned(),
        Ok(Some(WatchItem::Connected { .. })) => "connected".to_owned(),
        Ok(Some(WatchItem::Snapshot(snapshot))) => format!("snapshot {}", snapshot.position.seq.0),
        Ok(Some(WatchItem::Event(event))) => format!("{} {}", event.kind, event.id.seq.0),
        Ok(Some(WatchItem::Lost { .. })) => "lost".to_owned(),
        Err(Error::Closed(close)) => format!("closed {}", close.name()),
        Err(error) => format!("error {error}"),
    }
}

async fn take(watch: &mut SessionWatch, count: usize) -> Vec<String> {
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(next(watch).await);
    }
    items
}

// S3-110
#[tokio::test]
async fn watch_reconnects_with_the_last_id() {
    let (listener, mut watch) = start(WatchStart::After(at(1))).await;
    let server = async {
        let mut first = accept(&listener).await;
        assert_eq!(receive(&mut first).await, subscribe(Some(1), false));
        send(&mut first, &[ack(), event(2, "turn.started")]).await;
        drop(first);
        let mut second = accept(&listener).await;
        assert_eq!(receive(&mut second).await, subscribe(Some(2), false));
        send(&mut second, &[ack(), event(3, "turn.completed")]).await;
        close(second, SessionCloseReason::TooSlow).await;
        let mut third = accept(&listener).await;
        assert_eq!(receive(&mut third).await, subscribe(Some(3), false));
        send(&mut third, &[ack()]).await;
        close(third, SessionCloseReason::SessionDeleted).await;
    };
    let (items, ()) = tokio::join!(take(&mut watch, 9), server);
    let expected = [
        "connected",
        "turn.started 2",
        "lost",
        "connected",
        "turn.completed 3",
        "lost",
        "connected",
        "end",
        "end",
    ];
    assert_eq!(items, expected);
}

// S3-036
#[tokio::test]
async fn expired_cursor_becomes_a_snapshot_on_the_same_socket() {
    for code in ["cursor_expired", "replay_too_large"] {
        let (listener, mut watch) = start(WatchStart::After(at(1))).await;
        let server = async {
            let mut first = accept(&listener).await;
            assert_eq!(receive(&mut first).await, subscribe(Some(1), false));
            send(
                &mut first,
                &[json!({"type": "subscribe_error", "code": code, "message": ""})],
            )
            .await;
            assert_eq!(receive(&mut first).await, subscribe(None, true));
            let snapshot = json!({
                "type": "snapshot", "session": {}, "messages": [], "snapshot_at_event_id": at(40)
            });
            send(&mut first, &[ack(), snapshot, event(41, "turn.started")]).await;
            drop(first);
            let mut second = accept(&listener).await;
            assert_eq!(receive(&mut second).await, subscribe(Some(41), false));
        };
        let (items, ()) = tokio::join!(take(&mut watch, 5), server);
        assert_eq!(
            items,
            [
                "connected",
                "snapshot 40",
                "turn.started 41",
                "lost",
                "lost"
            ]
        );
    }
}

#[tokio::test]
async fn pings_and_unknown_events_advance_the_cursor() {
    let (listener, mut watch) = start(WatchStart::Live).await;
    let server = async {
        let mut first = accept(&listener).await;
        assert_eq!(receive(&mut first).await, subscribe(None, false));
        let ping = json!({"type": "ping", "nonce": "n1", "position": at(9)});
        send(&mut first, &[ack(), ping]).await;
        assert_eq!(
            receive(&mut first).await,
            json!({"type": "pong", "nonce": "n1"})
        );
        drop(first);
        let mut second = accept(&listener).await;
        assert_eq!(receive(&mut second).await, subscribe(Some(9), false));
        let newer = [
            ack(),
            event(10, "dream.started"),
            json!({"type": "weather"}),
        ];
        send(&mut second, &newer).await;
        drop(second);
        let mut third = accept(&listener).await;
        assert_eq!(receive(&mut third).await, subscribe(Some(10), false));
        close(third, SessionCloseReason::Quarantined).await;
    };
    let (items, ()) = tokio::join!(take(&mut watch, 6), server);
    let expected = [
        "connected",
        "lost",
        "connected",
        "lost",
        "closed session_quarantined",
        "end",
    ];
    assert_eq!(items, expected);
}

#[tokio::test]
async fn watch_retries_while_draining_and_stops_without_session() {
    let (listener, mut watch) = start(WatchStart::Snapshot).await;
    let problem = |status: u16, code: &str| json!({"status": status, "code": code});
    let server = async {
        answer(
            &listener,
            "503 Service Unavailable",
            &problem(503, "draining"),
        )
        .await;
        let mut first = accept(&listener).await;
        assert_eq!(receive(&mut first).await, subscribe(None, true));
        send(&mut first, &[ack()]).await;
        close(first, SessionCloseReason::Draining).await;
        answer(
            &listener,
            "404 Not Found",
            &problem(404, "session_not_found"),
        )
        .await;
    };
    let (items, ()) = tokio::join!(take(&mut watch, 4), server);
    assert_eq!(items, ["lost", "connected", "lost", "end"]);

    let (listener, mut watch) = start(WatchStart::Snapshot).await;
    let missing = problem(404, "session_not_found");
    let server = answer(&listener, "404 Not Found", &missing);
    let (item, ()) = tokio::join!(next(&mut watch), server);
    assert_eq!(item, "error  (session_not_found): ");
}

#[tokio::test]
async fn watch_attaches_again_after_a_used_token_and_ends_with_its_own() {
    let (listener, mut watch) = start(WatchStart::Live).await;
    let refused = json!({"status": 401, "code": "unauthorized", "title": "Unauthorized"});
    let server = async {
        answer(&listener, "200 OK", &attached()).await;
        let path = format!("/sessions/{SESSION}/stream?attach=atk_1");
        answer_at(&listener, &path, "401 Unauthorized", &refused).await;
        let mut first = accept(&listener).await;
        assert_eq!(receive(&mut first).await, subscribe(None, false));
        send(&mut first, &[ack()]).await;
        close(first, SessionCloseReason::IdentityRevoked).await;
        answer(&listener, "401 Unauthorized", &refused).await;
    };
    let (items, ()) = tokio::join!(take(&mut watch, 4), server);
    let error = "error Unauthorized (unauthorized): ";
    assert_eq!(items, ["lost", "connected", "lost", error]);
}

const WORKER: SessionId = SessionId(Ulid(8));
const BELOW: SessionId = SessionId(Ulid(9));

fn workers() -> Value {
    json!({"include_worker_sessions": true})
}

/// An event of a session, about `worker` if given.
fn session_event(session: SessionId, seq: u64, kind: &str, worker: Option<SessionId>) -> Value {
    json!({"type": "event", "event": {
        "id": at(seq), "type": kind, "session_id": session, "turn_id": null,
        "payload": {"worker_session_id": worker}
    }})
}

fn since(frame: &Value, expected: &[(SessionId, u64)]) {
    let ids = expected
        .iter()
        .map(|(id, seq)| (id.to_string(), json!(at(*seq))));
    assert_eq!(frame["since"], Value::Object(ids.collect()), "{frame}");
    assert_eq!(frame["filter"], workers());
}

// S3-087
#[tokio::test]
async fn cursor_is_kept_per_worker_from_start_to_end() {
    let (listener, mut watch) = start_with(workers(), WatchStart::After(at(1))).await;
    let server = async {
        let mut server = accept(&listener).await;
        assert_eq!(receive(&mut server).await["since"], json!(at(1)));
        let delegate_started = session_event(SESSION, 2, "delegate.started", Some(WORKER));
        send(&mut server, &[ack(), delegate_started]).await;
        drop(server);
        let mut server = accept(&listener).await;
        since(&receive(&mut server).await, &[(SESSION, 2), (WORKER, 0)]);
        let frames = [
            ack(),
            session_event(WORKER, 5, "turn.started", None),
            session_event(WORKER, 6, "delegate.started", Some(BELOW)),
            session_event(BELOW, 3, "martian.landed", None),
        ];
        send(&mut server, &frames).await;
        drop(server);
        let mut server = accept(&listener).await;
        let all = [(SESSION, 2), (WORKER, 6), (BELOW, 3)];
        since(&receive(&mut server).await, &all);
        let end = session_event(WORKER, 7, "delegate.failed", Some(BELOW));
        send(&mut server, &[ack(), end]).await;
        drop(server);
        let mut server = accept(&listener).await;
        since(&receive(&mut server).await, &[(SESSION, 2), (WORKER, 7)]);
        // The positions that the server reports replace those of the client.
        let ping = json!({
            "type": "ping", "nonce": "1", "position": at(9),
            "positions": {SESSION.to_string(): at(9), BELOW.to_string(): at(4)}
        });
        send(&mut server, &[ack(), ping]).await;
        assert_eq!(receive(&mut server).await["type"], "pong");
        drop(server);
        let mut server = accept(&listener).await;
        since(&receive(&mut server).await, &[(SESSION, 9), (BELOW, 4)]);
        // The server does not know a worker: the watch continues without it.
        let refusal = json!({"type": "subscribe_error", "code": "invalid_filter", "message": "?"});
        send(&mut server, &[refusal]).await;
        assert_eq!(receive(&mut server).await["since"], json!(at(9)));
        send(&mut server, &[ack()]).await;
        close(server, SessionCloseReason::SessionDeleted).await;
    };
    let (items, ()) = tokio::join!(take(&mut watch, 14), server);
    let events: Vec<_> = items.iter().filter(|item| item.contains('.')).collect();
    assert_eq!(
        events,
        [
            "delegate.started 2",
            "turn.started 5",
            "delegate.started 6",
            "delegate.failed 7"
        ]
    );
    assert_eq!(items.last().map(String::as_str), Some("end"));
}

// S3-087
#[tokio::test]
async fn ack_reports_positions_of_workers() {
    for first in [WatchStart::Live, WatchStart::Snapshot] {
        let (listener, mut watch) = start_with(workers(), first).await;
        let server = async {
            let mut server = accept(&listener).await;
            assert!(receive(&mut server).await["since"].is_null());
            let mut ack = ack();
            ack["positions"] = json!({SESSION.to_string(): at(4), WORKER.to_string(): at(2)});
            let snapshot = json!({
                "type": "snapshot", "session": {}, "messages": [], "snapshot_at_event_id": at(4)
            });
            let snapshot = Some(snapshot).filter(|_| first == WatchStart::Snapshot);
            let frames: Vec<Value> = std::iter::once(ack).chain(snapshot).collect();
            send(&mut server, &frames).await;
            drop(server);
            let mut server = accept(&listener).await;
            since(&receive(&mut server).await, &[(SESSION, 4), (WORKER, 2)]);
            close(server, SessionCloseReason::SessionDeleted).await;
        };
        let watched = async { while watch.next().await.expect("no error").is_some() {} };
        tokio::join!(watched, server);
    }
}

#[tokio::test]
async fn unreadable_frame_ends_the_watch() {
    for unreadable in [
        json!({"kind": "event"}),
        json!({"type": "event", "event": {"id": "x"}}),
        json!({"type": "snapshot", "messages": []}),
    ] {
        let (listener, mut watch) = start(WatchStart::Live).await;
        let serve = async {
            let mut server = accept(&listener).await;
            receive(&mut server).await;
            send(&mut server, &[ack(), unreadable.clone()]).await;
            // The watch may have left already.
            let late = Message::text(event(9, "tool.called").to_string());
            let _ = server.send(late).await;
            server
        };
        let watched = async {
            take(&mut watch, 1).await;
            let error = watch.next().await.expect_err("an unreadable frame");
            assert!(matches!(error, Error::InvalidResponse(_)), "{error:?}");
            assert_eq!(watch.next().await.expect("an end"), None, "{unreadable}");
        };
        let _ = tokio::join!(serve, watched);
    }
}
