//! JSON bodies: bounded in bytes and time; a refusal names what is wrong and where.
//!
//! An empty body means `{}` and needs no content type. The excess of a body that is too large is
//! read and discarded up to a bound, so that the client gets a response and no broken connection.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use turnwire_wire::problem::Code;

use crate::config::http::Http;
use crate::error::RequestFault;
use crate::request::header::only;
use crate::state::AppState;

/// The bytes of a body that is too large that are discarded before the connection is closed.
const DISCARD_BYTES_MAX: usize = 16 << 20;

/// The longest part of an error message that repeats the client's text.
const ECHO_CHARS_MAX: usize = 200;

/// A body parsed as JSON.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<AppState> for JsonBody<T> {
    type Rejection = RequestFault;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, RequestFault> {
        let (parts, body) = request.into_parts();
        let bytes = collect(&parts.headers, body, &state.config.http).await?;
        parse(&parts.headers, &bytes).map(Self)
    }
}

/// Reads a whole body within the limits.
async fn collect(headers: &HeaderMap, body: Body, limits: &Http) -> Result<Bytes, RequestFault> {
    let max = limits.body_max_bytes;
    let wait = Duration::from_millis(limits.body_timeout_ms);
    let too_large = || {
        let detail = format!("The body may have {max} bytes.");
        RequestFault::new(Code::BodyTooLarge, detail).with("limit_bytes", max)
    };
    let announced = only(headers, header::CONTENT_LENGTH)
        .ok()
        .flatten()
        .and_then(|text| text.parse::<usize>().ok());
    let oversized = announced.is_some_and(|bytes| bytes > max);
    if oversized && headers.contains_key(header::EXPECT) {
        // The client waits for a response before it sends the body.
        return Err(too_large());
    }
    let read = read_up_to(body, if oversized { 0 } else { max });
    match tokio::time::timeout(wait, read).await {
        Err(_) => {
            let detail = format!("The body took longer than {} ms.", limits.body_timeout_ms);
            Err(RequestFault::new(Code::RequestTimeout, detail))
        }
        Ok(Err(_)) => Err(RequestFault::new(
            Code::MalformedJson,
            "The body broke off.",
        )),
        Ok(Ok(bytes)) => bytes.ok_or_else(too_large),
    }
}

/// Reads a body of at most `max` bytes; `None` if it is longer.
async fn read_up_to(mut body: Body, max: usize) -> Result<Option<Bytes>, axum::Error> {
    let mut all = Vec::new();
    let mut seen = 0usize;
    while let Some(frame) = body.frame().await {
        let frame = frame?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        seen = seen.saturating_add(data.len());
        if seen <= max {
            all.extend_from_slice(data);
        } else if seen > max.saturating_add(DISCARD_BYTES_MAX) {
            break;
        }
    }
    Ok((seen <= max).then(|| all.into()))
}

/// Parses the bytes of a body.
fn parse<T: DeserializeOwned>(headers: &HeaderMap, bytes: &[u8]) -> Result<T, RequestFault> {
    if bytes.is_empty() {
        return serde_json::from_slice(b"{}").map_err(|error| refused(&error));
    }
    let kind = only(headers, header::CONTENT_TYPE).ok().flatten();
    let essence = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !essence.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Err(RequestFault::new(
            Code::UnsupportedMediaType,
            "Send the body as Content-Type: application/json.",
        ));
    }
    if !is_object(bytes) {
        // A list would be parsed too, by the order of the fields.
        let parsed = serde_json::from_slice::<IgnoredAny>(bytes);
        let detail = "The body must be a JSON object.";
        return Err(parsed.map_or_else(
            |error| refused(&error),
            |_| RequestFault::new(Code::InvalidRequest, detail),
        ));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        // A syntax error is reported first, even if a field before it is wrong.
        let parsed = serde_json::from_slice::<IgnoredAny>(bytes);
        refused(&parsed.err().unwrap_or(error))
    })
}

/// True if the bytes begin as a JSON object does.
fn is_object(bytes: &[u8]) -> bool {
    bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
}

/// The [`RequestFault`] of a body that cannot be parsed.
fn refused(error: &serde_json::Error) -> RequestFault {
    // The end of a body that ends with a new line has no column of its own.
    let (line, column) = (error.line(), error.column().max(1));
    let at = |fault: RequestFault| fault.with("line", line).with("column", column);
    match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => at(RequestFault::new(
            Code::MalformedJson,
            format!("The body is not JSON from line {line}, column {column} on."),
        )),
        Category::Data => {
            let text = error.to_string();
            let text = text.split(" at line ").next().unwrap_or_default();
            if let Some((name, expected)) = text
                .strip_prefix("unknown field `")
                .and_then(|rest| rest.split_once('`'))
            {
                let name: String = name.chars().take(64).collect();
                let detail = format!("There is no field {name:?} here{expected}.");
                return at(RequestFault::new(Code::UnknownField, detail).with("field", name));
            }
            let text: String = text.chars().take(ECHO_CHARS_MAX).collect();
            let fault = RequestFault::new(
                Code::InvalidRequest,
                format!("The body does not fit: {text}."),
            );
            // A field that is missing has no place in the body.
            if text.starts_with("missing field") {
                fault
            } else {
                at(fault)
            }
        }
    }
}

#[cfg(test)]
mod tests;
