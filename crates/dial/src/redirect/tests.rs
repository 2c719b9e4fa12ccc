//! Redirects to every kind of target, checked without a connection.

use super::*;

fn url(text: &str) -> Url {
    text.parse().expect("a url")
}

fn request(method: HttpMethod, at: &str) -> HttpRequest {
    HttpRequest {
        headers: RequestHeaders::new([("authorization", "Bearer secret")]).expect("headers"),
        body: Some(bytes::Bytes::from_static(b"{}")),
        ..HttpRequest::new(method, url(at))
    }
}

fn header_count(headers: &RequestHeaders) -> usize {
    headers.clone().into_map().len()
}

/// The URL that a GET of `from` is redirected to by the header `location`.
fn redirect_target(from: &str, location: &str, allow: &[&str]) -> Result<String, DialError> {
    let allow: Vec<AllowRule> = allow.iter().map(|a| a.parse().expect("an entry")).collect();
    let mut request = request(HttpMethod::Get, from);
    let first = request.url.clone();
    let bytes = Some(location.as_bytes());
    follow_redirect(&mut request, 302, bytes, &first, &allow).map(|_| request.url.into())
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

// G5
#[test]
fn redirect_to_private_address_in_any_form_is_refused() {
    for location in FORBIDDEN {
        let redirect_target = redirect_target("http://good.example/a", location, &[]);
        assert_eq!(redirect_target, Err(DialError::Refused), "{location}");
        // The same holds for a redirect from a private address that the operator configured.
        let redirect_target =
            self::redirect_target("http://10.9.9.9/a", location, &["other.internal"]);
        assert_eq!(redirect_target, Err(DialError::Refused), "{location}");
    }
}

// G5
#[test]
fn allowed_targets_pass_and_link_local_never_does() {
    let all = ["0.0.0.0/0", "::/0", "localhost"];
    for location in [
        "http://127.1/",
        "http://[::1]/",
        "http://localhost:81/",
        "http://10.0.0.1/",
    ] {
        assert!(
            redirect_target("http://good.example/", location, &all).is_ok(),
            "{location}"
        );
    }
    for location in [
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "file:///x",
        "http://a@10.0.0.1/",
    ] {
        let redirect_target = redirect_target("http://good.example/", location, &all);
        assert_eq!(redirect_target, Err(DialError::Refused), "{location}");
    }
    // One of the two addresses of `localhost` is not enough: either may be used.
    let redirect_target = redirect_target(
        "http://good.example/",
        "http://localhost/",
        &["127.0.0.0/8"],
    );
    assert_eq!(redirect_target, Err(DialError::Refused));
}

// G5
#[test]
fn redirect_within_configured_origin_passes_other_ports_fail() {
    let at = "http://10.0.0.1:8080/a";
    assert_eq!(
        redirect_target(at, "/b", &[]),
        Ok("http://10.0.0.1:8080/b".into())
    );
    assert_eq!(
        redirect_target(at, "http://10.0.0.1:8081/", &[]),
        Err(DialError::Refused)
    );
    assert_eq!(
        redirect_target(at, "https://10.0.0.1:8080/", &[]),
        Err(DialError::Refused)
    );
    assert_eq!(
        redirect_target("http://localhost:1/a", "b", &[]),
        Ok("http://localhost:1/b".into())
    );
    assert_eq!(
        redirect_target("http://localhost:1/a", "//localhost:2/", &[]),
        Err(DialError::Refused)
    );
}

// G5
#[test]
fn redirect_from_https_to_http_is_refused() {
    assert_eq!(
        redirect_target("https://a.example/", "http://a.example/", &[]),
        Err(DialError::Refused)
    );
    assert_eq!(
        redirect_target("https://a.example/", "/b", &[]),
        Ok("https://a.example/b".into())
    );
    assert_eq!(
        redirect_target("http://a.example/", "https://a.example/", &[]),
        Ok("https://a.example/".into())
    );
}

// G8
#[test]
fn headers_are_removed_for_another_origin() {
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
        let mut request = request(HttpMethod::Get, from);
        let first = request.url.clone();
        let redirect_target = follow_redirect(&mut request, 307, Some(to.as_bytes()), &first, &[]);
        assert_eq!(redirect_target, Ok(true), "{to}");
        assert_eq!(header_count(&request.headers), left, "{from} {to}");
    }
    // Headers are not restored when a later redirect returns to the first origin.
    let mut request = request(HttpMethod::Get, "https://a.example/");
    let first = request.url.clone();
    for to in ["https://b.example/", "https://a.example/"] {
        let redirect_target = follow_redirect(&mut request, 307, Some(to.as_bytes()), &first, &[]);
        assert_eq!(redirect_target, Ok(true));
    }
    assert_eq!(header_count(&request.headers), 0);
}

#[test]
fn redirect_status_decides_method_and_body() {
    use HttpMethod::{Delete, Get, Patch, Post, Put};
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
        let redirect_target = follow_redirect(&mut request, status, Some(b"/b"), &first, &[]);
        assert_eq!(redirect_target, Ok(true));
        assert_eq!(request.method, then, "{status} {method:?}");
        assert_eq!(
            request.body.is_some(),
            then == method,
            "{status} {method:?}"
        );
    }
}

#[test]
fn other_responses_are_not_redirects() {
    let mut request = request(HttpMethod::Get, "https://a.example/");
    let first = request.url.clone();
    for (status, location) in [
        (200, Some(&b"/b"[..])),
        (300, Some(b"/b")),
        (304, Some(b"/b")),
        (305, Some(b"/b")),
        (201, Some(b"http://10.0.0.1/")),
        (302, None),
    ] {
        let redirect_target = follow_redirect(&mut request, status, location, &first, &[]);
        assert_eq!(redirect_target, Ok(false), "{status}");
    }
    assert_eq!(request.url, first);
    let redirect_target = follow_redirect(&mut request, 302, Some(b"\xff\xfe"), &first, &[]);
    assert_eq!(redirect_target, Err(DialError::Refused));
}

#[test]
fn redirects_are_counted() {
    let mut request = request(HttpMethod::Get, "https://a.example/");
    request.redirects_max = Some(2);
    let first = request.url.clone();
    for expected in [Ok(true), Ok(true), Err(DialError::TooManyRedirects)] {
        let redirect_target = follow_redirect(&mut request, 302, Some(b"/"), &first, &[]);
        assert_eq!(redirect_target, expected);
    }
}
