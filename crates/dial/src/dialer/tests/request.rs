//! [`Dialer::request`] and [`Dialer::open`] over real sockets: what is sent and which redirects are
//! followed.

use std::sync::Mutex;

use futures_util::StreamExt as _;

use super::site::{Site, read_complete_request};
use super::*;
use crate::headers::RequestHeaders;

/// Far longer than any step of these tests: a wait that reaches it has failed.
const LONG: Duration = Duration::from_secs(30);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

fn redirect_to(location: &str) -> String {
    format!("HTTP/1.1 302 Go\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
}

fn get(url: Url) -> HttpRequest {
    HttpRequest {
        headers: RequestHeaders::new([("authorization", "Bearer key"), ("x-team", "blue")])
            .expect("headers"),
        timeout: LONG,
        max_bytes: 1_000,
        ..HttpRequest::new(HttpMethod::Get, url)
    }
}

/// A dialer that resolves every name to the local host, which the names in `allow` may use.
fn local_dialer(allow: &[&str]) -> Dialer {
    dialer_resolving_to(&["127.0.0.1"], allow)
}

#[tokio::test]
async fn request_is_sent_with_its_method_headers_and_body() {
    use HttpMethod::{Delete, Get, Patch, Post, Put};
    let site = Site::open(|_| OK.to_owned()).await;
    for method in [Get, Post, Put, Patch, Delete] {
        let body = (method != Get && method != Delete).then(|| Bytes::from_static(b"{\"a\":1}"));
        let request = HttpRequest {
            method,
            body,
            accept: "text/plain".into(),
            content_type: "application/merge-patch+json".into(),
            ..get(site.url("127.0.0.1", "/p?q=1"))
        };
        let sends = request.body.is_some();
        let reply = dialer().send(request).await.expect("a reply");
        assert_eq!((reply.status, &reply.body[..]), (200, &b"hi"[..]));
        assert!(!reply.redirected);
        let received_request = site.requests().pop().expect("a request");
        let line = format!(
            "{} /p?q=1 HTTP/1.1\r\n",
            format!("{method:?}").to_uppercase()
        );
        assert!(received_request.starts_with(&line), "{received_request}");
        for line in [
            "accept: text/plain\r\n",
            "accept-encoding: identity\r\n",
            "authorization: Bearer key\r\n",
            "x-team: blue\r\n",
        ] {
            assert_eq!(
                received_request.matches(line).count(),
                1,
                "{line} in {received_request}"
            );
        }
        let kind = "content-type: application/merge-patch+json\r\n";
        assert_eq!(received_request.contains(kind), sends, "{received_request}");
        assert_eq!(
            received_request.ends_with("\r\n\r\n{\"a\":1}"),
            sends,
            "{received_request}"
        );
    }
}

#[tokio::test]
async fn content_type_is_read_without_parameters() {
    for (line, kind) in [
        (
            "content-type: Application/JSON; charset=utf-8\r\n",
            "application/json",
        ),
        ("content-type: text/plain\r\n", "text/plain"),
        ("content-type: ;;\r\n", ""),
        ("content-type: \u{fc}\r\n", ""),
        ("", ""),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{line}x-id: 7\r\ncontent-length: 0\r\n\r\n");
        let site = Site::open(move |_| head.clone()).await;
        let reply = dialer().send(get(site.url("127.0.0.1", "/"))).await;
        let reply = reply.expect("a reply");
        assert_eq!(reply.content_type(), kind, "{line}");
        assert_eq!(reply.header("X-Id"), Some("7"));
        assert_eq!(reply.header("x-none"), None);
    }
}

#[tokio::test]
async fn redirect_is_followed_and_post_becomes_get() {
    for (status, line) in [
        (301, "GET"),
        (302, "GET"),
        (303, "GET"),
        (307, "POST"),
        (308, "POST"),
    ] {
        let site = Site::open(move |head| {
            if head.contains(" /b ") {
                OK.to_owned()
            } else {
                redirect_to("/b").replace("302", &status.to_string())
            }
        })
        .await;
        let request = HttpRequest {
            method: HttpMethod::Post,
            body: Some(Bytes::from_static(b"{}")),
            ..get(site.url("127.0.0.1", "/a"))
        };
        let reply = dialer().send(request).await.expect("a reply");
        assert_eq!((reply.status, reply.redirected), (200, true));
        let last = site.requests().pop().expect("a request");
        assert!(last.starts_with(&format!("{line} /b ")), "{status} {last}");
        // The origin is the same, so the headers are kept.
        assert!(last.contains("authorization: Bearer key"), "{last}");
        assert_eq!(last.ends_with("{}"), line == "POST", "{last}");
        assert_eq!(last.contains("content-type"), line == "POST", "{last}");
    }
}

// G8
#[tokio::test]
async fn headers_are_not_sent_to_another_origin() {
    let other = Site::open(|_| OK.to_owned()).await;
    let location = other.url("other.example", "/").to_string();
    let first = Site::open(move |_| redirect_to(&location)).await;
    let dialer = local_dialer(&["127.0.0.0/8"]);
    let request = HttpRequest {
        accept: "text/csv".into(),
        ..get(first.url("first.example", "/"))
    };
    let reply = dialer.send(request).await.expect("a reply");
    assert_eq!((reply.status, reply.redirected), (200, true));
    let received_request = other.requests().concat();
    assert!(
        received_request.contains("accept: text/csv"),
        "{received_request}"
    );
    for secret in [
        "Bearer",
        "authorization",
        "x-team",
        "blue",
        "first.example",
        "referer",
    ] {
        assert!(
            !received_request.contains(secret),
            "{secret} in {received_request}"
        );
    }
    assert!(first.requests().concat().contains("Bearer key"));
}

// G5
#[tokio::test]
async fn redirect_from_allowed_host_to_private_is_refused() {
    let inside = Site::open(|_| OK.to_owned()).await;
    let port = inside.port;
    for place in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://evil.example:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://017700000001:{port}/"),
        format!("http://127.1:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://good.example@127.0.0.1:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("gopher://127.0.0.1:{port}/"),
        format!("ftp://good.example:{port}/"),
        "http://169.254.169.254/latest/meta-data".into(),
        "http://[fe80::1%25lo]/".into(),
        "file:///etc/passwd".into(),
    ] {
        let location = place.clone();
        let good = Site::open(move |_| redirect_to(&location)).await;
        let dialer = local_dialer(&["good.example"]);
        let url = good.url("good.example", "/");
        let result = dialer.send(get(url.clone())).await.map(|_| ());
        assert_eq!(result, Err(DialError::Refused), "{place}");
        let open = dialer.send_streaming(get(url)).await.map(|_| ());
        assert_eq!(open, Err(DialError::Refused), "{place}");
        assert_eq!(good.requests().len(), 2);
    }
    assert_eq!(inside.requests(), Vec::<String>::new());
}

// G5
#[tokio::test]
async fn redirect_loops_and_long_chains_end() {
    let loop_site = Site::open(|_| redirect_to("/")).await;
    let result = dialer().send(get(loop_site.url("127.0.0.1", "/"))).await;
    assert_eq!(result.map(|_| ()), Err(DialError::TooManyRedirects));
    assert_eq!(loop_site.requests().len(), 4);
    // /3 → /2 → /1 → /0 is within the limit of three redirects, /4 exceeds it.
    let chain = async |from: &str| {
        let site = Site::open(|head| {
            let n = head["GET /".len()..].split(' ').next().expect("a path");
            let n: u8 = n.parse().expect("a number");
            n.checked_sub(1)
                .map_or(OK.to_owned(), |next| redirect_to(&format!("/{next}")))
        })
        .await;
        let result = dialer().send(get(site.url("127.0.0.1", from))).await;
        result.map(|reply| reply.status)
    };
    assert_eq!(chain("/3").await, Ok(200));
    assert_eq!(chain("/4").await, Err(DialError::TooManyRedirects));
    let no_redirects = HttpRequest {
        redirects_max: Some(0),
        ..get(loop_site.url("127.0.0.1", "/"))
    };
    let result = dialer().send(no_redirects).await.map(|_| ());
    assert_eq!(result, Err(DialError::TooManyRedirects));
}

/// Resolves a name to another address on every lookup.
struct ChangingLookup(Mutex<Vec<&'static str>>, AtomicUsize);

impl HostLookup for ChangingLookup {
    fn lookup(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let next = self.0.lock().expect("one at a time").remove(0);
        Ok(vec![next.parse().expect("an address")])
    }
}

// G5
#[tokio::test]
async fn changing_name_is_checked_for_every_connection() {
    let site = Site::open(|head| {
        if head.contains(" /b ") {
            OK.to_owned()
        } else {
            redirect_to("/b")
        }
    })
    .await;
    let url = site.url("flip.example", "/a");
    for then in [
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "fe80::1",
        "::ffff:10.0.0.1",
    ] {
        let names = Arc::new(ChangingLookup(
            Mutex::new(vec!["127.0.0.1", then]),
            AtomicUsize::new(0),
        ));
        let allow = vec!["127.0.0.1".parse().expect("an entry")];
        let dialer = Dialer::with_lookup(DialerOptions { allow }, Arc::clone(&names) as _);
        let dialer = dialer.expect("a dialer");
        // The server closes after each response, so the second hop opens a new connection.
        let result = dialer.send(get(url.clone())).await.map(|_| ());
        assert_eq!(result, Err(DialError::Refused), "{then}");
        // One lookup per connection: the checked address is the one that is used.
        assert_eq!(names.1.load(Ordering::Relaxed), 2);
    }
    assert!(site.requests().iter().all(|head| !head.contains(" /b ")));
}

// G9
#[tokio::test]
async fn oversized_body_fails_complete_and_streamed() {
    let chunk = format!("1f4\r\n{}\r\n", "x".repeat(500));
    let endless =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned() + &chunk.repeat(10_000);
    let site = Site::open(move |_| endless.clone()).await;
    let url = site.url("127.0.0.1", "/");
    let too_large = DialError::TooLarge { max_bytes: 1_000 };
    let result = dialer().send(get(url.clone())).await.map(|_| ());
    assert_eq!(result, Err(too_large));
    let mut incoming = dialer().send_streaming(get(url)).await.expect("a head");
    let mut read = 0;
    let end = loop {
        match incoming.next().await.expect("an end") {
            Ok(chunk) => read += chunk.len(),
            Err(error) => break error,
        }
    };
    assert_eq!(end, too_large);
    assert!(read <= 1_000, "{read}");
    assert!(incoming.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn timeout_covers_all_hops_and_the_body() {
    let drip: Vec<&str> = std::iter::once("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        .chain(std::iter::repeat_n("1\r\nx\r\n", 100))
        .collect();
    let (slow, _) = server(&drip, Duration::from_secs(1)).await;
    let late = HttpRequest {
        method: HttpMethod::Post,
        body: Some(Bytes::from_static(b"{}")),
        timeout: LIMITS.timeout,
        connect: LONG,
        ..get(slow)
    };
    let started = tokio::time::Instant::now();
    let result = dialer().send(late).await.map(|_| ());
    assert_eq!(result, Err(DialError::Timeout));
    assert_eq!(started.elapsed(), LIMITS.timeout);
}

#[tokio::test]
async fn open_returns_head_and_streams_body() {
    let head = "HTTP/1.1 202 OK\r\ncontent-type: text/event-stream;x=y\r\nmcp-session-id: s1\r\n\
                transfer-encoding: chunked\r\n\r\n4\r\n: hi\r\n0\r\n\r\n";
    let site = Site::open(|_| head.to_owned()).await;
    let request = HttpRequest {
        accept: "application/json, text/event-stream".into(),
        ..get(site.url("127.0.0.1", "/mcp"))
    };
    let mut incoming = dialer().send_streaming(request).await.expect("a head");
    assert_eq!(incoming.status(), 202);
    assert_eq!(incoming.header("Mcp-Session-Id"), Some("s1"));
    assert_eq!(incoming.content_type(), "text/event-stream");
    assert_eq!(incoming.next().await, Some(Ok(Bytes::from_static(b": hi"))));
    assert_eq!(incoming.next().await, None);
    let received_request = site.requests().concat();
    assert!(
        received_request.contains("accept: application/json, text/event-stream\r\n"),
        "{received_request}"
    );
}

#[tokio::test]
async fn dropping_a_request_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let request = get(url.parse().expect("a url"));
    let sending = tokio::spawn(async move { dialer().send(request).await.map(|_| ()) });
    let (mut socket, _) = listener.accept().await.expect("a client");
    read_complete_request(&mut socket).await.expect("a request");
    sending.abort();
    let mut buffer = [0; 16];
    let end = tokio::time::timeout(LONG, socket.read(&mut buffer)).await;
    assert!(matches!(end, Ok(Ok(0) | Err(_))), "{end:?}");
}

// G6
#[tokio::test]
async fn debug_output_of_request_and_reply_has_no_secrets() {
    let request = HttpRequest {
        body: Some(Bytes::from_static(b"SECRET")),
        headers: RequestHeaders::new([("x-key", "SECRET")]).expect("headers"),
        ..get("https://host.test/SECRET?key=SECRET"
            .parse()
            .expect("a url"))
    };
    let debug_output = format!("{request:?}");
    assert!(
        debug_output.contains("x-key") && debug_output.contains("body_bytes: 6"),
        "{debug_output}"
    );
    let secret = "HTTP/1.1 200 OK\r\nx-key: SECRET\r\ncontent-length: 6\r\n\r\nSECRET";
    let site = Site::open(|_| secret.to_owned()).await;
    let reply = dialer().send(get(site.url("127.0.0.1", "/"))).await;
    let debug_output = debug_output + &format!("{:?}", reply.expect("a reply"));
    assert!(
        !debug_output.contains("SECRET") && !debug_output.contains("host.test"),
        "{debug_output}"
    );
}
