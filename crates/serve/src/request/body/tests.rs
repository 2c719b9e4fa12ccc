//! Bodies: which are accepted, and the error of each that is not.

use axum::http::HeaderValue;
use futures_util::stream;
use serde_json::json;
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::TurnSubmit;

use super::*;
use crate::access::callers;
use crate::config::{ServerConfig, SettingSources};

fn headers(kind: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_str(kind).expect("a header"),
    );
    headers
}

fn limits(max: usize, timeout_ms: u64) -> Http {
    let nowhere = SettingSources {
        home: Some("/nonexistent/turnwire".into()),
        ..SettingSources::default()
    };
    let mut http = ServerConfig::load(&nowhere).expect("defaults").http;
    http.body_max_bytes = max;
    http.body_timeout_ms = timeout_ms;
    http
}

/// Reads a body of an owner that has room for one large body.
async fn read_body(headers: &HeaderMap, body: Body, limits: &Http) -> Result<Bytes, RequestFault> {
    read_sharing(
        &OwnerShares::transfers(2, 1, 1 << 20),
        headers,
        body,
        limits,
    )
    .await
}

async fn read_sharing(
    shares: &OwnerShares,
    headers: &HeaderMap,
    body: Body,
    limits: &Http,
) -> Result<Bytes, RequestFault> {
    let gate = TransferGate::new(shares, callers::anonymous());
    let read = super::read_body(headers, body, limits, gate).await;
    read.map(|(bytes, _)| bytes)
}

fn fault(body: &str) -> RequestFault {
    parse::<TurnSubmit>(&headers("application/json"), body.as_bytes()).expect_err("refused")
}

#[test]
fn json_is_accepted_and_empty_body_is_empty_object() {
    let none = SessionCreate::default();
    assert_eq!(parse(&HeaderMap::new(), b""), Ok(none.clone()));
    for kind in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/json;x=y",
    ] {
        assert_eq!(parse(&headers(kind), b"{}"), Ok(none.clone()), "{kind}");
    }
}

#[test]
fn other_content_types_are_refused() {
    for kind in [
        "text/plain",
        "application/jsonx",
        "application/problem+json",
        "",
    ] {
        let fault = parse::<SessionCreate>(&headers(kind), b"{}").expect_err("refused");
        assert_eq!(fault.code(), Code::UnsupportedMediaType, "{kind}");
    }
    let fault = parse::<SessionCreate>(&HeaderMap::new(), b"{}").expect_err("refused");
    assert_eq!(fault.code(), Code::UnsupportedMediaType);
}

#[test]
fn malformed_json_is_refused_with_its_place() {
    let expected = RequestFault::new(
        Code::MalformedJson,
        "The body is not JSON from line 2, column 1 on.",
    );
    assert_eq!(
        fault("{\"message\":\n}"),
        expected.with("line", 2).with("column", 1)
    );
    for bad in [
        "{",
        "{\"message\":\"hi\"",
        "nul",
        "{\"a\":1}x",
        "\u{feff}{}",
        " ",
    ] {
        assert_eq!(fault(bad).code(), Code::MalformedJson, "{bad}");
    }
    let deep = "[".repeat(10_000);
    assert_eq!(fault(&deep).code(), Code::MalformedJson);
    let not_text = b"{\"workspace_path\":\"\xff\"}";
    let not_text = parse::<SessionCreate>(&headers("application/json"), not_text);
    assert_eq!(not_text.expect_err("refused").code(), Code::MalformedJson);
}

#[test]
fn unknown_fields_are_named() {
    let expected = RequestFault::new(
        Code::UnknownField,
        "There is no field \"mesage\" here, expected one of `message`, `locale`, \
         `on_disconnect`, `disconnect_grace_ms`, `on_busy`, \
             `location`, `metadata`, `origin`, `dm_type`, `job`.",
    );
    assert_eq!(
        fault(r#"{"mesage":"hi"}"#),
        expected
            .with("field", "mesage")
            .with("line", 1)
            .with("column", 9)
    );
}

#[test]
fn type_mismatch_is_described_in_terms_of_the_body() {
    let detail = "The body does not fit: missing field `message`.";
    assert_eq!(fault("{}"), RequestFault::new(Code::InvalidRequest, detail));
    let detail = "The body must be a JSON object.";
    for bad in ["[]", " 5", "\"x\"", "null"] {
        assert_eq!(
            fault(bad),
            RequestFault::new(Code::InvalidRequest, detail),
            "{bad}"
        );
    }
    // Not even a list of as many values as there are fields.
    let list = parse::<SessionCreate>(&headers("application/json"), b"[null, null]");
    assert_eq!(list, Err(RequestFault::new(Code::InvalidRequest, detail)));
    let expected = RequestFault::new(
        Code::InvalidRequest,
        "The body does not fit: invalid type: integer `5`, expected a string or a list of \
         content blocks.",
    );
    assert_eq!(
        fault(r#"{"message":5}"#),
        expected.with("line", 1).with("column", 12)
    );
    let long = json!({"message": "x", "on_disconnect": "y".repeat(5_000)}).to_string();
    let text = format!("{:?}", fault(&long));
    assert!(text.len() < 500, "{text}");
}

#[tokio::test]
async fn oversize_body_is_refused_in_any_transfer_form() {
    let exact = read_body(&HeaderMap::new(), Body::from("12345"), &limits(5, 1_000)).await;
    assert_eq!(exact, Ok(Bytes::from("12345")));
    let expected = RequestFault::new(Code::BodyTooLarge, "The body may have at most 5 bytes.");
    let expected = expected.with("limit_bytes", 5);
    let over = read_body(&HeaderMap::new(), Body::from("123456"), &limits(5, 1_000)).await;
    assert_eq!(over, Err(expected.clone()));
    let pieces = stream::iter(["123", "456"].map(Ok::<_, std::io::Error>));
    let streamed = read_body(
        &HeaderMap::new(),
        Body::from_stream(pieces),
        &limits(5, 1_000),
    )
    .await;
    assert_eq!(streamed, Err(expected.clone()));
    let mut announced = HeaderMap::new();
    announced.insert(header::CONTENT_LENGTH, 6.into());
    announced.insert(header::EXPECT, HeaderValue::from_static("100-continue"));
    let pending = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let asked = read_body(&announced, pending, &limits(5, 60_000)).await;
    assert_eq!(asked, Err(expected));
}

#[tokio::test]
async fn body_of_unknown_length_is_a_transfer_once_it_is_large() {
    let shares = OwnerShares::transfers(2, 1, 1 << 20);
    let limits = limits(1 << 20, 10_000);
    let pieces = |count: usize| {
        let piece = Bytes::from(vec![b' '; 32 << 10]);
        let pieces = vec![piece; count].into_iter().map(Ok::<_, std::io::Error>);
        Body::from_stream(stream::iter(pieces))
    };
    let held = shares.acquire_body(&callers::anonymous(), 1 << 20);
    let held = held.expect("the only place").expect("a large body");
    let headers = HeaderMap::new();
    let small = read_sharing(&shares, &headers, pieces(2), &limits).await;
    assert_eq!(small.map(|bytes| bytes.len()), Ok(64 << 10));
    for large in [pieces(3), Body::from(vec![b' '; 65 << 10])] {
        let refused = read_sharing(&shares, &headers, large, &limits).await;
        assert_eq!(refused.expect_err("refused").code(), Code::TooManyRequests);
    }
    drop(held);
    let large = read_sharing(&shares, &headers, pieces(3), &limits).await;
    assert_eq!(large.map(|bytes| bytes.len()), Ok(96 << 10));
    // The place is free again after each of them.
    let again = read_sharing(&shares, &headers, pieces(3), &limits).await;
    assert!(again.is_ok());
}

#[tokio::test]
async fn body_of_unknown_length_counts_as_large_as_it_may_become() {
    let shares = OwnerShares::transfers(8, 4, 1 << 20);
    let limits = limits(3 << 20, 10_000);
    let held = shares.acquire_body(&callers::anonymous(), 2 << 20);
    let held = held.expect("two of four places").expect("a large body");
    let large = || {
        let piece = Bytes::from(vec![b' '; 65 << 10]);
        Body::from_stream(stream::iter([Ok::<_, std::io::Error>(piece)]))
    };
    let headers = HeaderMap::new();
    let refused = read_sharing(&shares, &headers, large(), &limits).await;
    assert_eq!(refused.expect_err("refused").code(), Code::TooManyRequests);
    drop(held);
    let read = read_sharing(&shares, &headers, large(), &limits).await;
    assert_eq!(read.map(|bytes| bytes.len()), Ok(65 << 10));
}

#[tokio::test]
async fn slow_or_broken_body_ends_the_request() {
    let pending = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let late = read_body(&HeaderMap::new(), pending, &limits(5, 20)).await;
    assert_eq!(late.expect_err("refused").code(), Code::RequestTimeout);
    let broken = stream::iter([Ok(Bytes::from("1")), Err(std::io::Error::other("reset"))]);
    let broken = read_body(
        &HeaderMap::new(),
        Body::from_stream(broken),
        &limits(5, 1_000),
    )
    .await;
    assert_eq!(
        broken,
        Err(RequestFault::new(
            Code::MalformedJson,
            "The connection broke before the end of the body."
        ))
    );
}
