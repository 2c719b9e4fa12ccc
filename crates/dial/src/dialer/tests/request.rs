//! Requests in general, over real sockets: what is sent, where it is sent on, and where it is not.

use std::sync::Mutex;

use futures_util::StreamExt as _;

use super::site::{Site, whole};
use super::*;
use crate::request::Method;

/// Far longer than anything here takes: a wait that ends with it has failed.
const LONG: Duration = Duration::from_secs(30);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

fn to(location: &str) -> String {
    format!("HTTP/1.1 302 Go\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
}

fn get(url: Url) -> Request {
    Request {
        headers: Headers::new([("authorization", "Bearer key"), ("x-team", "blue")])
            .expect("headers"),
        timeout: LONG,
        max_bytes: 1_000,
        ..Request::new(Method::Get, url)
    }
}

/// Every name is this machine; those of `allow` may be.
fn local(allow: &[&str]) -> Dialer {
    named(&["127.0.0.1"], allow)
}

#[tokio::test]
async fn what_is_sent_is_what_was_asked_for() {
    use Method::{Delete, Get, Patch, Post, Put};
    let site = Site::open(|_| OK.to_owned()).await;
    for method in [Get, Post, Put, Patch, Delete] {
        let body = (method != Get && method != Delete).then(|| Bytes::from_static(b"{\"a\":1}"));
        let request = Request {
            method,
            body,
            accept: "text/plain".into(),
            content_type: "application/merge-patch+json".into(),
            ..get(site.at("127.0.0.1", "/p?q=1"))
        };
        let sends = request.body.is_some();
        let reply = dialer().request(request).await.expect("a reply");
        assert_eq!((reply.status, &reply.body[..]), (200, &b"hi"[..]));
        assert!(!reply.moved);
        let heard = site.heard().pop().expect("a request");
        let line = format!(
            "{} /p?q=1 HTTP/1.1\r\n",
            format!("{method:?}").to_uppercase()
        );
        assert!(heard.starts_with(&line), "{heard}");
        for line in [
            "accept: text/plain\r\n",
            "accept-encoding: identity\r\n",
            "authorization: Bearer key\r\n",
            "x-team: blue\r\n",
        ] {
            assert_eq!(heard.matches(line).count(), 1, "{line} in {heard}");
        }
        let kind = "content-type: application/merge-patch+json\r\n";
        assert_eq!(heard.contains(kind), sends, "{heard}");
        assert_eq!(heard.ends_with("\r\n\r\n{\"a\":1}"), sends, "{heard}");
    }
}

#[tokio::test]
async fn the_kind_of_an_answer_is_read_without_its_parameters() {
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
        let reply = dialer().request(get(site.at("127.0.0.1", "/"))).await;
        let reply = reply.expect("a reply");
        assert_eq!(reply.content_type(), kind, "{line}");
        assert_eq!(reply.header("X-Id"), Some("7"));
        assert_eq!(reply.header("x-none"), None);
    }
}

#[tokio::test]
async fn a_redirect_is_followed_and_a_post_becomes_a_get() {
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
                to("/b").replace("302", &status.to_string())
            }
        })
        .await;
        let request = Request {
            method: Method::Post,
            body: Some(Bytes::from_static(b"{}")),
            ..get(site.at("127.0.0.1", "/a"))
        };
        let reply = dialer().request(request).await.expect("a reply");
        assert_eq!((reply.status, reply.moved), (200, true));
        let last = site.heard().pop().expect("a request");
        assert!(last.starts_with(&format!("{line} /b ")), "{status} {last}");
        // The same origin: its headers are still for it.
        assert!(last.contains("authorization: Bearer key"), "{last}");
        assert_eq!(last.ends_with("{}"), line == "POST", "{last}");
        assert_eq!(last.contains("content-type"), line == "POST", "{last}");
    }
}

#[tokio::test]
async fn g8_headers_do_not_go_to_another_origin() {
    let other = Site::open(|_| OK.to_owned()).await;
    let location = other.at("other.example", "/").to_string();
    let first = Site::open(move |_| to(&location)).await;
    let dialer = local(&["127.0.0.0/8"]);
    let request = Request {
        accept: "text/csv".into(),
        ..get(first.at("first.example", "/"))
    };
    let reply = dialer.request(request).await.expect("a reply");
    assert_eq!((reply.status, reply.moved), (200, true));
    let heard = other.heard().concat();
    assert!(heard.contains("accept: text/csv"), "{heard}");
    for secret in [
        "Bearer",
        "authorization",
        "x-team",
        "blue",
        "first.example",
        "referer",
    ] {
        assert!(!heard.contains(secret), "{secret} in {heard}");
    }
    assert!(first.heard().concat().contains("Bearer key"));
}

#[tokio::test]
async fn g5_a_redirect_from_an_allowed_host_leads_nowhere_inside() {
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
        let good = Site::open(move |_| to(&location)).await;
        let dialer = local(&["good.example"]);
        let url = good.at("good.example", "/");
        let whole = dialer.request(get(url.clone())).await.map(|_| ());
        assert_eq!(whole, Err(DialError::Refused), "{place}");
        let open = dialer.open(get(url)).await.map(|_| ());
        assert_eq!(open, Err(DialError::Refused), "{place}");
        assert_eq!(good.heard().len(), 2);
    }
    assert_eq!(inside.heard(), Vec::<String>::new());
}

#[tokio::test]
async fn g5_circles_and_long_ways_end() {
    let circle = Site::open(|_| to("/")).await;
    let asked = dialer().request(get(circle.at("127.0.0.1", "/"))).await;
    assert_eq!(asked.map(|_| ()), Err(DialError::Redirects));
    assert_eq!(circle.heard().len(), 4);
    // /3 → /2 → /1 → /0 is just within the three, /4 one too far.
    let chain = async |from: &str| {
        let site = Site::open(|head| {
            let n = head["GET /".len()..].split(' ').next().expect("a path");
            let n: u8 = n.parse().expect("a number");
            n.checked_sub(1)
                .map_or(OK.to_owned(), |next| to(&format!("/{next}")))
        })
        .await;
        let asked = dialer().request(get(site.at("127.0.0.1", from))).await;
        asked.map(|reply| reply.status)
    };
    assert_eq!(chain("/3").await, Ok(200));
    assert_eq!(chain("/4").await, Err(DialError::Redirects));
    let none = Request {
        redirects_max: 0,
        ..get(circle.at("127.0.0.1", "/"))
    };
    let asked = dialer().request(none).await.map(|_| ());
    assert_eq!(asked, Err(DialError::Redirects));
}

/// A name that stands for another address each time it is looked up.
struct Flips(Mutex<Vec<&'static str>>, AtomicUsize);

impl Lookup for Flips {
    fn lookup(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let next = self.0.lock().expect("one at a time").remove(0);
        Ok(vec![next.parse().expect("an address")])
    }
}

#[tokio::test]
async fn g5_a_name_that_flips_is_judged_by_the_address_that_is_connected_to() {
    let site = Site::open(|head| {
        if head.contains(" /b ") {
            OK.to_owned()
        } else {
            to("/b")
        }
    })
    .await;
    let url = site.at("flip.example", "/a");
    for then in [
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "fe80::1",
        "::ffff:10.0.0.1",
    ] {
        let names = Arc::new(Flips(
            Mutex::new(vec!["127.0.0.1", then]),
            AtomicUsize::new(0),
        ));
        let allow = vec!["127.0.0.1".parse().expect("an entry")];
        let dialer = Dialer::resolving(Options { allow }, Arc::clone(&names) as _);
        let dialer = dialer.expect("a dialer");
        // The server closes after each answer, so the second hop is a connection of its own.
        let asked = dialer.request(get(url.clone())).await.map(|_| ());
        assert_eq!(asked, Err(DialError::Refused), "{then}");
        // One look-up for each connection: what was judged is what would be connected to.
        assert_eq!(names.1.load(Ordering::Relaxed), 2);
    }
    assert!(site.heard().iter().all(|head| !head.contains(" /b ")));
}

#[tokio::test]
async fn g9_a_body_over_the_cap_ends_the_request_whole_or_streamed() {
    let chunk = format!("1f4\r\n{}\r\n", "x".repeat(500));
    let endless =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned() + &chunk.repeat(10_000);
    let site = Site::open(move |_| endless.clone()).await;
    let url = site.at("127.0.0.1", "/");
    let too_large = DialError::TooLarge { max_bytes: 1_000 };
    let whole = dialer().request(get(url.clone())).await.map(|_| ());
    assert_eq!(whole, Err(too_large));
    let mut incoming = dialer().open(get(url)).await.expect("a head");
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
async fn the_time_is_for_all_hops_and_bytes_together() {
    let drip: Vec<&str> = std::iter::once("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        .chain(std::iter::repeat_n("1\r\nx\r\n", 100))
        .collect();
    let (slow, _) = server(&drip, Duration::from_secs(1)).await;
    let late = Request {
        method: Method::Post,
        body: Some(Bytes::from_static(b"{}")),
        timeout: LIMITS.timeout,
        connect: LONG,
        ..get(slow)
    };
    let begun = tokio::time::Instant::now();
    let asked = dialer().request(late).await.map(|_| ());
    assert_eq!(asked, Err(DialError::Timeout));
    assert_eq!(begun.elapsed(), LIMITS.timeout);
}

#[tokio::test]
async fn an_open_answer_shows_its_head_and_streams() {
    let head = "HTTP/1.1 202 OK\r\ncontent-type: text/event-stream;x=y\r\nmcp-session-id: s1\r\n\
                transfer-encoding: chunked\r\n\r\n4\r\n: hi\r\n0\r\n\r\n";
    let site = Site::open(|_| head.to_owned()).await;
    let request = Request {
        accept: "application/json, text/event-stream".into(),
        ..get(site.at("127.0.0.1", "/mcp"))
    };
    let mut incoming = dialer().open(request).await.expect("a head");
    assert_eq!(incoming.status(), 202);
    assert_eq!(incoming.header("Mcp-Session-Id"), Some("s1"));
    assert_eq!(incoming.content_type(), "text/event-stream");
    assert_eq!(incoming.next().await, Some(Ok(Bytes::from_static(b": hi"))));
    assert_eq!(incoming.next().await, None);
    let heard = site.heard().concat();
    assert!(
        heard.contains("accept: application/json, text/event-stream\r\n"),
        "{heard}"
    );
}

#[tokio::test]
async fn dropping_a_request_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let asked = get(url.parse().expect("a url"));
    let asking = tokio::spawn(async move { dialer().request(asked).await.map(|_| ()) });
    let (mut socket, _) = listener.accept().await.expect("a client");
    whole(&mut socket).await.expect("a request");
    asking.abort();
    let mut buffer = [0; 16];
    let end = tokio::time::timeout(LONG, socket.read(&mut buffer)).await;
    assert!(matches!(end, Ok(Ok(0) | Err(_))), "{end:?}");
}

#[tokio::test]
async fn g6_a_request_and_its_reply_show_nothing_of_what_they_carry() {
    let request = Request {
        body: Some(Bytes::from_static(b"SECRET")),
        headers: Headers::new([("x-key", "SECRET")]).expect("headers"),
        ..get("https://host.test/SECRET?key=SECRET"
            .parse()
            .expect("a url"))
    };
    let shown = format!("{request:?}");
    assert!(
        shown.contains("x-key") && shown.contains("body_bytes: 6"),
        "{shown}"
    );
    let secret = "HTTP/1.1 200 OK\r\nx-key: SECRET\r\ncontent-length: 6\r\n\r\nSECRET";
    let site = Site::open(|_| secret.to_owned()).await;
    let reply = dialer().request(get(site.at("127.0.0.1", "/"))).await;
    let shown = shown + &format!("{:?}", reply.expect("a reply"));
    assert!(
        !shown.contains("SECRET") && !shown.contains("host.test"),
        "{shown}"
    );
}
