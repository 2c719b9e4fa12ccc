//! Over a real socket: what a request carries beside its body.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use turnwire_dial::{Dialer, DialerOptions, RequestHeaders};

use super::*;
use crate::data_service::{ServiceCredentials, rest_transport};
use crate::tool::Tool as _;

/// Runs the tool once against a service that answers with `answer`; gives the head of the request, and
/// how many connections there were.
async fn head_of(answer: &'static str, headers: RequestHeaders) -> (String, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let heads = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let service = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = vec![0; 65_536];
            let mut n = 0;
            while !request[..n].ends_with(b"}}") {
                n += socket.read(&mut request[n..]).await.expect("a request");
            }
            let text = String::from_utf8_lossy(&request[..n]).into_owned();
            let head = text.split("\r\n\r\n").next().expect("a head");
            seen.lock().push(head.to_owned());
            socket.write_all(answer.as_bytes()).await.expect("written");
        }
    });
    let dialer = Arc::new(Dialer::new(DialerOptions::default()).expect("a dialer"));
    let connector = fake_service::connector(&url, |service| {
        let credentials = ServiceCredentials {
            headers: headers.clone(),
            dialer: None,
        };
        rest_transport(service, &dialer, credentials)
    });
    let tool = fake_service::enricher_tool(&fake_service::tool(), &connector);
    let sink = EventSink::with_room(10);
    tool.run(call(json!({"query": "x"}), &sink))
        .await
        .expect_err("no answer is an envelope");
    service.abort();
    let heads = heads.lock();
    (heads.first().cloned().unwrap_or_default(), heads.len())
}

// S4-014
#[tokio::test]
async fn request_carries_the_trace_and_the_headers_of_its_service() {
    let headers = [
        ("authorization", "Bearer sk-market-key"),
        ("x-team", "shop"),
    ];
    let headers = RequestHeaders::new(headers).expect("headers");
    let error = "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n";
    let (head, requests) = head_of(error, headers).await;
    assert_eq!(requests, 1, "no retry");
    let sink = EventSink::with_room(1);
    let context = Arc::clone(&call(json!({}), &sink).context);
    let trace = context.trace.as_ref().expect("a trace");
    let traceparent = format!("traceparent: 00-{}-{}-", trace.trace_id, trace.span_id);
    for line in [
        "authorization: Bearer sk-market-key",
        "x-team: shop",
        &traceparent,
    ] {
        assert!(
            head.lines().any(|sent| sent.starts_with(line)),
            "{line}: {head}"
        );
    }
}

// G6, G8
#[tokio::test]
async fn redirect_never_carries_the_headers_of_a_service() {
    let other = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let redirect = format!(
        "HTTP/1.1 307 Elsewhere\r\nlocation: http://{}/v1/enrich\r\ncontent-length: 0\r\n\r\n",
        other.local_addr().expect("bound")
    );
    let headers = RequestHeaders::new([("authorization", "Bearer sk-market-key")]);
    let (head, _) = head_of(redirect.leak(), headers.expect("headers")).await;
    assert!(head.contains("sk-market-key"), "{head}");
    let followed = tokio::time::timeout(Duration::from_millis(200), other.accept()).await;
    assert!(followed.is_err(), "the redirect was followed");
}
