//! Every place that a redirect could lead to, judged without a connection.

use super::*;

fn url(text: &str) -> Url {
    text.parse().expect("a url")
}

fn request(method: Method, at: &str) -> Request {
    Request {
        headers: Headers::new([("authorization", "Bearer secret")]).expect("headers"),
        body: Some(bytes::Bytes::from_static(b"{}")),
        ..Request::new(method, url(at))
    }
}

fn kept(headers: &Headers) -> usize {
    headers.clone().into_map().len()
}

/// Where a GET of `from` ends when the answer says to go to `location`.
fn led(from: &str, location: &str, allow: &[&str]) -> Result<String, DialError> {
    let allow: Vec<Allow> = allow.iter().map(|a| a.parse().expect("an entry")).collect();
    let mut request = request(Method::Get, from);
    let first = request.url.clone();
    let bytes = Some(location.as_bytes());
    follow(&mut request, 302, bytes, &first, &allow).map(|_| request.url.into())
}

const FORBIDDEN: [&str; 44] = [
    "http://127.0.0.1/",
    "http://127.0.0.1:8080/",
    "http://127.1/",
    "http://127.0.0.1./",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[64:ff9b::10.0.0.1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[fd12::1]/",
    "http://[fd00:ec2::254]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data",
    "http://2852039166/",
    "http://localhost/",
    "http://LOCALHOST:6379/",
    "http://localhost./",
    "http://１２７.０.０.１/",
    "http://127。0。0。1/",
    "//127.0.0.1/",
    "\\\\127.0.0.1\\",
    "http:\\\\127.0.0.1\\",
    "http://good.example@127.0.0.1/",
    "http://user:pass@good.example/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_x",
    "data:,x",
    "javascript:1",
    "http://",
];

#[test]
fn g5_no_redirect_leads_inside_whatever_form_its_address_has() {
    for place in FORBIDDEN {
        let led = led("http://good.example/a", place, &[]);
        assert_eq!(led, Err(DialError::Refused), "{place}");
        // From an address inside that the operator wrote it is no different.
        let led = self::led("http://10.9.9.9/a", place, &["other.internal"]);
        assert_eq!(led, Err(DialError::Refused), "{place}");
    }
}

#[test]
fn g5_what_the_allow_list_holds_is_open_and_the_link_never_is() {
    let all = ["0.0.0.0/0", "::/0", "localhost"];
    for place in [
        "http://127.1/",
        "http://[::1]/",
        "http://localhost:81/",
        "http://10.0.0.1/",
    ] {
        assert!(led("http://good.example/", place, &all).is_ok(), "{place}");
    }
    for place in [
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "file:///x",
        "http://a@10.0.0.1/",
    ] {
        let led = led("http://good.example/", place, &all);
        assert_eq!(led, Err(DialError::Refused), "{place}");
    }
    // One of the two addresses of `localhost` is not enough: nobody knows which it will be.
    let led = led(
        "http://good.example/",
        "http://localhost/",
        &["127.0.0.0/8"],
    );
    assert_eq!(led, Err(DialError::Refused));
}

#[test]
fn g5_the_operators_own_origin_stays_theirs_and_no_other_port_of_it() {
    let at = "http://10.0.0.1:8080/a";
    assert_eq!(led(at, "/b", &[]), Ok("http://10.0.0.1:8080/b".into()));
    assert_eq!(
        led(at, "http://10.0.0.1:8081/", &[]),
        Err(DialError::Refused)
    );
    assert_eq!(
        led(at, "https://10.0.0.1:8080/", &[]),
        Err(DialError::Refused)
    );
    assert_eq!(
        led("http://localhost:1/a", "b", &[]),
        Ok("http://localhost:1/b".into())
    );
    assert_eq!(
        led("http://localhost:1/a", "//localhost:2/", &[]),
        Err(DialError::Refused)
    );
}

#[test]
fn g5_a_redirect_never_goes_from_https_to_http() {
    assert_eq!(
        led("https://a.example/", "http://a.example/", &[]),
        Err(DialError::Refused)
    );
    assert_eq!(
        led("https://a.example/", "/b", &[]),
        Ok("https://a.example/b".into())
    );
    assert_eq!(
        led("http://a.example/", "https://a.example/", &[]),
        Ok("https://a.example/".into())
    );
}

#[test]
fn g8_headers_stay_with_the_origin_they_were_given_for() {
    let cases = [
        ("https://a.example/x", "/y", 1),
        ("https://a.example/x", "https://a.example:443/y", 1),
        ("https://a.example/x", "https://A.EXAMPLE/y", 1),
        ("https://a.example/x", "https://b.example/y", 0),
        ("https://a.example/x", "https://a.example:444/y", 0),
        ("https://a.example/x", "https://sub.a.example/y", 0),
        ("http://a.example/x", "https://a.example/y", 0),
    ];
    for (from, to, left) in cases {
        let mut request = request(Method::Get, from);
        let first = request.url.clone();
        let led = follow(&mut request, 307, Some(to.as_bytes()), &first, &[]);
        assert_eq!(led, Ok(true), "{to}");
        assert_eq!(kept(&request.headers), left, "{from} {to}");
    }
    // There and back again they stay off.
    let mut request = request(Method::Get, "https://a.example/");
    let first = request.url.clone();
    for to in ["https://b.example/", "https://a.example/"] {
        let led = follow(&mut request, 307, Some(to.as_bytes()), &first, &[]);
        assert_eq!(led, Ok(true));
    }
    assert_eq!(kept(&request.headers), 0);
}

#[test]
fn what_is_asked_after_a_redirect_depends_on_its_status() {
    use Method::{Delete, Get, Patch, Post, Put};
    for (status, method, then) in [
        (301, Post, Get),
        (302, Post, Get),
        (303, Post, Get),
        (303, Put, Get),
        (303, Delete, Get),
        (301, Put, Put),
        (302, Patch, Patch),
        (307, Post, Post),
        (308, Post, Post),
        (308, Delete, Delete),
    ] {
        let mut request = request(method, "https://a.example/");
        let first = request.url.clone();
        let led = follow(&mut request, status, Some(b"/b"), &first, &[]);
        assert_eq!(led, Ok(true));
        assert_eq!(request.method, then, "{status} {method:?}");
        assert_eq!(
            request.body.is_some(),
            then == method,
            "{status} {method:?}"
        );
    }
}

#[test]
fn what_is_no_redirect_is_an_answer() {
    let mut request = request(Method::Get, "https://a.example/");
    let first = request.url.clone();
    for (status, location) in [
        (200, Some(&b"/b"[..])),
        (300, Some(b"/b")),
        (304, Some(b"/b")),
        (305, Some(b"/b")),
        (201, Some(b"http://10.0.0.1/")),
        (302, None),
    ] {
        let led = follow(&mut request, status, location, &first, &[]);
        assert_eq!(led, Ok(false), "{status}");
    }
    assert_eq!(request.url, first);
    let led = follow(&mut request, 302, Some(b"\xff\xfe"), &first, &[]);
    assert_eq!(led, Err(DialError::Refused));
}

#[test]
fn hops_are_counted() {
    let mut request = request(Method::Get, "https://a.example/");
    request.redirects_max = 2;
    let first = request.url.clone();
    for expected in [Ok(true), Ok(true), Err(DialError::Redirects)] {
        let led = follow(&mut request, 302, Some(b"/"), &first, &[]);
        assert_eq!(led, expected);
    }
}
