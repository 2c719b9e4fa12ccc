//! The dialer against a small server that sends any bytes a test wants.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Resolves every name to these addresses.
struct FixedLookup(Vec<IpAddr>);

impl HostLookup for FixedLookup {
    fn lookup(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(self.0.clone())
    }
}

const LIMITS: ResponseLimits = ResponseLimits {
    timeout: Duration::from_secs(5),
    max_bytes: 1_000,
};

fn dialer() -> Dialer {
    Dialer::new(DialerOptions::default()).expect("a dialer")
}

fn dialer_resolving_to(addresses: &[&str], allow: &[&str]) -> Dialer {
    let addresses = addresses.iter().map(|a| a.parse().expect("an address"));
    let allow = allow.iter().map(|a| a.parse().expect("an entry")).collect();
    let lookup = FixedLookup(addresses.collect());
    Dialer::with_lookup(DialerOptions { allow }, Arc::new(lookup)).expect("a dialer")
}

/// Reads one request whose body is `{}`; `None` when the client has closed the connection.
async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut received = Vec::new();
    while !received.ends_with(b"{}") {
        let mut buffer = [0; 1_024];
        let n = socket.read(&mut buffer).await.ok().filter(|&n| n > 0)?;
        received.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8(received).ok()
}

/// Starts a server that answers every request with the same parts, with a pause between them.
/// Returns its URL and a counter of connections.
async fn server(parts: &[&str], pause: Duration) -> (Url, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let parts: Vec<String> = parts.iter().map(|&part| part.to_owned()).collect();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let parts = parts.clone();
            tokio::spawn(async move {
                while read_request(&mut socket).await.is_some() {
                    for part in &parts {
                        if socket.write_all(part.as_bytes()).await.is_err() {
                            return;
                        }
                        tokio::time::sleep(pause).await;
                    }
                    if !parts.concat().contains("keep-alive") {
                        return;
                    }
                }
            });
        }
    });
    let url = format!("http://127.0.0.1:{port}/v1/enrich");
    (url.parse().expect("a url"), connections)
}

async fn post_to_server(parts: &[&str]) -> Result<JsonResponse, DialError> {
    let (url, _) = server(parts, Duration::ZERO).await;
    dialer()
        .post_json(&url, RequestHeaders::default(), "{}", LIMITS)
        .await
}

fn response(status: u16, body: &'static str) -> Result<JsonResponse, DialError> {
    let body = Bytes::from_static(body.as_bytes());
    Ok(JsonResponse { status, body })
}

#[tokio::test]
async fn response_of_any_status_is_returned() {
    assert_eq!(
        post_to_server(&["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"]).await,
        response(200, "hi")
    );
    assert_eq!(
        post_to_server(&["HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\nno"]).await,
        response(503, "no")
    );
}

#[tokio::test]
async fn post_json_sends_json_and_accepts_no_encoding() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1/enrich", listener.local_addr().expect("bound"));
    let url: Url = url.parse().expect("a url");
    let received_request = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        let received_request = read_request(&mut socket).await.expect("a request");
        let answer = b"HTTP/1.1 204 No\r\n\r\n";
        socket.write_all(answer).await.expect("written");
        received_request.to_ascii_lowercase()
    });
    let answer = dialer()
        .post_json(&url, RequestHeaders::default(), "{}", LIMITS)
        .await;
    assert_eq!(answer, response(204, ""));
    let received_request = received_request.await.expect("heard");
    assert!(
        received_request.starts_with("post /v1/enrich http/1.1\r\n"),
        "{received_request}"
    );
    for line in [
        "content-type: application/json",
        "accept-encoding: identity",
    ] {
        assert!(
            received_request.contains(line),
            "{line} in {received_request}"
        );
    }
    for line in ["referer", "cookie", "authorization", "proxy"] {
        assert!(
            !received_request.contains(line),
            "{line} in {received_request}"
        );
    }
}

// G5
#[tokio::test]
async fn post_json_does_not_follow_redirects() {
    let (inside, visits) = server(
        &["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"],
        Duration::ZERO,
    )
    .await;
    for status in [301, 302, 303, 307, 308] {
        let head =
            format!("HTTP/1.1 {status} Go\r\nlocation: {inside}\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(post_to_server(&[&head]).await, response(status, ""));
    }
    assert_eq!(visits.load(Ordering::Relaxed), 0);
}

// G5
#[tokio::test]
async fn name_with_private_address_is_refused_unless_allowed() {
    let (url, visits) = server(
        &["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"],
        Duration::ZERO,
    )
    .await;
    let port = url.port().expect("a port");
    let by_name: Url = format!("http://ccs.example:{port}/")
        .parse()
        .expect("a url");
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "169.254.169.254",
        "fe80::1",
    ] {
        let answer = dialer_resolving_to(&[address], &[])
            .post_json(&by_name, RequestHeaders::default(), "{}", LIMITS)
            .await;
        assert_eq!(answer, Err(DialError::Refused), "{address}");
    }
    // One allowed address among forbidden ones is not enough.
    let mixed = dialer_resolving_to(&["93.184.216.34", "127.0.0.1"], &[]);
    assert_eq!(
        mixed
            .post_json(&by_name, RequestHeaders::default(), "{}", LIMITS)
            .await,
        Err(DialError::Refused)
    );
    assert_eq!(visits.load(Ordering::Relaxed), 0);
    for allow in ["ccs.example", "127.0.0.0/8"] {
        let answer = dialer_resolving_to(&["127.0.0.1"], &[allow])
            .post_json(&by_name, RequestHeaders::default(), "{}", LIMITS)
            .await;
        assert_eq!(answer, response(200, "hi"), "{allow}");
    }
    let local: Url = format!("http://localhost:{port}/").parse().expect("a url");
    let answer = dialer_resolving_to(&["127.0.0.1"], &[])
        .post_json(&local, RequestHeaders::default(), "{}", LIMITS)
        .await;
    assert_eq!(answer, response(200, "hi"));
}

// G5
#[tokio::test]
async fn forbidden_urls_are_refused_before_sending() {
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://169.254.43518/",
        "http://user:secret@127.0.0.1/",
        "http://user@127.0.0.1/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "data:,x",
        "unix:/run/x",
    ] {
        let parsed: Url = url.parse().expect("a url");
        let everything = dialer_resolving_to(&[], &["0.0.0.0/0", "::/0"]);
        let answer = everything
            .post_json(&parsed, RequestHeaders::default(), "{}", LIMITS)
            .await;
        assert_eq!(answer, Err(DialError::Refused), "{url}");
    }
}

// G9
#[tokio::test]
async fn oversized_body_fails_with_any_framing() {
    let (at, over) = ("x".repeat(1_000), "x".repeat(1_001));
    let too_large = Err(DialError::TooLarge { max_bytes: 1_000 });
    let head = |rest: &str| format!("HTTP/1.1 200 OK\r\n{rest}\r\n");
    let length = |n: usize| head(&format!("content-length: {n}\r\n"));
    let chunked = head("transfer-encoding: chunked\r\n");
    let (chunk, last) = (
        "1f4\r\n".to_owned() + &"x".repeat(500) + "\r\n",
        "0\r\n\r\n",
    );

    let complete = post_to_server(&[&length(1_000), &at])
        .await
        .expect("it fits");
    assert_eq!(complete.body, at);
    assert_eq!(post_to_server(&[&length(1_001), &over]).await, too_large);
    assert_eq!(post_to_server(&[&length(9_999_999_999)]).await, too_large);
    let complete = post_to_server(&[&chunked, &chunk, &chunk, last])
        .await
        .expect("it fits");
    assert_eq!(complete.body, at);
    // The body would never end; the limit ends it.
    let endless: Vec<&str> = std::iter::once(chunked.as_str())
        .chain(std::iter::repeat_n(chunk.as_str(), 10_000))
        .collect();
    assert_eq!(post_to_server(&endless).await, too_large);
    // Without a length, the end of the connection ends the body.
    assert_eq!(post_to_server(&[&head(""), &over]).await, too_large);
    // A length smaller than the body ends the body at that length.
    let less = post_to_server(&[&length(2), &over])
        .await
        .expect("two bytes");
    assert_eq!(less.body, "xx");
    // A length larger than the body makes the response incomplete.
    assert_eq!(
        post_to_server(&[&length(900), "x"]).await,
        Err(DialError::Unreachable)
    );
}

#[tokio::test]
async fn compressed_response_is_refused() {
    for encoding in ["gzip", "br", "zstd", "deflate"] {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: 2\r\n\r\nhi"
        );
        assert_eq!(
            post_to_server(&[&head]).await,
            Err(DialError::UnexpectedEncoding)
        );
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-length: 2\r\n\r\nhi";
    assert_eq!(post_to_server(&[head]).await, response(200, "hi"));
}

#[tokio::test(start_paused = true)]
async fn timeout_covers_headers_and_body() {
    let second = Duration::from_secs(1);
    let started = tokio::time::Instant::now();
    // One byte per second, without end: no single byte is late, but the response is.
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let drip: Vec<&str> = std::iter::once(head)
        .chain(std::iter::repeat_n("1\r\nx\r\n", 100))
        .collect();
    let (url, _) = server(&drip, second).await;
    assert_eq!(
        dialer()
            .post_json(&url, RequestHeaders::default(), "{}", LIMITS)
            .await,
        Err(DialError::Timeout)
    );
    let head: Vec<String> = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n"
        .chars()
        .map(String::from)
        .collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let (url, _) = server(&head, second).await;
    assert_eq!(
        dialer()
            .post_json(&url, RequestHeaders::default(), "{}", LIMITS)
            .await,
        Err(DialError::Timeout)
    );
    assert_eq!(started.elapsed(), 2 * LIMITS.timeout);
}

#[tokio::test(start_paused = true)]
async fn unaccepted_connection_times_out_closed_port_fails() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url: Url = format!("http://{}/", listener.local_addr().expect("bound"))
        .parse()
        .expect("a url");
    assert_eq!(
        dialer()
            .post_json(&url, RequestHeaders::default(), "{}", LIMITS)
            .await,
        Err(DialError::Timeout)
    );
    drop(listener);
    assert_eq!(
        dialer()
            .post_json(&url, RequestHeaders::default(), "{}", LIMITS)
            .await,
        Err(DialError::Unreachable)
    );
}

#[tokio::test]
async fn malformed_http_is_unreachable() {
    for garbage in [
        "",
        "hello\r\n\r\n",
        "HTTP/1.1 9 x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
    ] {
        assert_eq!(
            post_to_server(&[garbage]).await,
            Err(DialError::Unreachable),
            "{garbage:?}"
        );
    }
}

#[tokio::test]
async fn connections_are_reused() {
    let head = "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi";
    let (url, connections) = server(&[head], Duration::ZERO).await;
    let dialer = dialer();
    for _ in 0..5 {
        assert_eq!(
            dialer
                .post_json(&url, RequestHeaders::default(), "{}", LIMITS)
                .await,
            response(200, "hi")
        );
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

// G6
#[tokio::test]
async fn errors_reveal_nothing_about_the_remote_side() {
    let url: Url = "http://secret-host.example:1/secret-path"
        .parse()
        .expect("a url");
    let dialer = dialer_resolving_to(&["10.0.0.1"], &[]);
    let refused = dialer
        .post_json(&url, RequestHeaders::default(), "secret-body", LIMITS)
        .await
        .expect_err("refused");
    let every = [
        refused,
        DialError::Timeout,
        DialError::ConnectTimeout,
        DialError::Unreachable,
        DialError::TooLarge { max_bytes: 1 },
        DialError::UnexpectedEncoding,
        DialError::TooManyRedirects,
        DialError::Setup,
    ];
    for error in every {
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}

// G5
#[test]
fn proxy_environment_variables_are_ignored() {
    // Environment variables belong to the process, so the test starts a process of its own.
    let mut other = std::process::Command::new(std::env::current_exe().expect("this test"));
    other.args(["--exact", "dialer::tests::connections_are_reused"]);
    for name in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "all_proxy",
        "ALL_PROXY",
    ] {
        other.env(name, "http://127.0.0.1:9");
    }
    let run = other.env_remove("no_proxy").env_remove("NO_PROXY").output();
    let stdout = String::from_utf8(run.expect("it ran").stdout).expect("text");
    assert!(stdout.contains("1 passed"), "{stdout}");
}

mod stream;
mod tls;
mod site;
mod request;
