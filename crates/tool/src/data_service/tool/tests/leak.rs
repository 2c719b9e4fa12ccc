//! Over a real socket: a response with a marker in every header and every field. Only the payload gets
//! out; no other marker is in any result, failure or event.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use turnwire_dial::{Dialer, DialerOptions};

use super::*;
use crate::data_service::{ServiceCredentials, rest_transport};
use crate::tool::Tool as _;

/// Fields of an envelope that must not get out; `M_PAYLOAD` may.
const SECRETS: [&str; 9] = [
    "M_HEADER",
    "M_REASON",
    "M_SOURCE",
    "M_PARTREASON",
    "M_KEY",
    "M_TIMING",
    "M_EXTRA",
    "M_VERSION",
    "M_PRINCIPAL",
];

fn marked(fields: Value) -> Value {
    let mut marked = envelope(json!({
        "version": "1.2.0-M_VERSION",
        "partial": [{"source": "M_SOURCE", "critical": true, "reason": "M_PARTREASON"}],
        "cache_meta": {"cached": true, "cacheable": true, "ttl": 1, "key": "M_KEY"},
        "timing": {"total_ms": 1, "host": "M_TIMING"},
        "reason": "M_REASON",
        "M_EXTRA": "M_EXTRA",
        "payload": {"items": [{"id": "M_PAYLOAD"}]},
    }));
    for (key, value) in fields.as_object().expect("fields") {
        marked[key] = value.clone();
    }
    marked
}

/// A tool whose service responds once, with `body`, over HTTP.
async fn served(status: u16, body: String) -> (PackTool, Arc<EventSink>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        let mut seen = vec![0; 65_536];
        let mut n = 0;
        while !seen[..n].ends_with(b"}}") {
            n += socket.read(&mut seen[n..]).await.expect("a request");
        }
        assert!(seen.starts_with(b"POST /v1/enrich HTTP/1.1\r\n"));
        let head = format!(
            "HTTP/1.1 {status} M_HEADER\r\nx-request-id: M_HEADER\r\nserver: M_HEADER\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let answer = head + &body;
        socket.write_all(answer.as_bytes()).await.expect("written");
    });
    let dialer = Arc::new(Dialer::new(DialerOptions::default()).expect("a dialer"));
    let connector = fake_service::connector(&url, |service| {
        rest_transport(service, &dialer, ServiceCredentials::default())
    });
    (
        fake_service::enricher_tool(&fake_service::tool(), &connector),
        EventSink::with_room(10),
    )
}

// S1-083, S1-093, S1-141
#[tokio::test]
async fn only_the_payload_of_an_envelope_gets_out() {
    let cases = [
        (200, marked(json!({})), true),
        (200, marked(json!({"status": "partial"})), true),
        (200, marked(json!({"status": "error"})), false),
        (200, marked(json!({"principal": "M_PRINCIPAL"})), false),
        (200, marked(json!({"version": "2.0.0-M_VERSION"})), false),
        (
            200,
            marked(json!({"payload": {"items": "M_PAYLOAD"}})),
            false,
        ),
        (200, marked(json!({"enricher_id": "M_EXTRA"})), false),
        (200, marked(json!({"status": "M_EXTRA"})), false),
        (
            400,
            json!({"error": "missing_principal", "x": "M_EXTRA"}),
            false,
        ),
        (
            403,
            json!({"error": "principal_mismatch", "x": "M_PRINCIPAL"}),
            false,
        ),
        (500, json!("M_EXTRA"), false),
    ];
    for (status, body, comes) in cases {
        let case = format!("{status} {body}");
        let (tool, sink) = served(status, body.to_string()).await;
        let call = call(json!({"query": "x"}), &sink);
        let context = Arc::clone(&call.context);
        let result = tool.run(call).await;
        assert_eq!(result.is_ok(), comes, "{case}: {result:?}");
        let out = format!("{result:?} {:?} {:?}", sink.emissions(), context.items);
        let message = match &result {
            Ok(value) => value.to_string(),
            Err(failure) => format!("{failure} {failure:?}"),
        };
        for secret in SECRETS {
            assert!(!out.contains(secret), "{case}: {secret} in {out}");
            assert!(!message.contains(secret), "{case}: {secret} in {message}");
        }
        assert_eq!(out.contains("M_PAYLOAD"), comes, "{case}");
        assert!(sink.emissions().is_empty());
    }
}

// S2-050, G6
#[tokio::test]
async fn info_log_has_nothing_of_an_envelope() {
    let logs = LogCapture::start();
    let (tool, sink) = served(200, marked(json!({"principal": "M_PRINCIPAL"})).to_string()).await;
    tool.run(call(json!({}), &sink))
        .await
        .expect_err("for somebody else");
    let received = logs.log();
    let visible = received.lines().filter(|line| {
        [" INFO ", " WARN ", "ERROR "]
            .iter()
            .any(|level| line.contains(level))
    });
    let visible: Vec<&str> = visible.collect();
    assert_eq!(visible.len(), 1, "{visible:?}");
    for secret in SECRETS.iter().chain(&["M_PAYLOAD", "127.0.0.1"]) {
        assert!(!visible[0].contains(secret), "{visible:?}");
    }
}
