//! JSON bodies, bounded in bytes and time; the error of an invalid body names the mistake, its line
//! and its column.
//!
//! An empty body means `{}` and needs no content type. A body that is refused is read to its end and
//! discarded, up to a bound: a client that still sends when the connection closes may not see the
//! response. A body above 64 KiB is a transfer of its owner while it is in memory as bytes.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use turnwire_event::Owner;
use turnwire_wire::problem::Code;

use crate::access::header::single_value;
use crate::config::http::Http;
use crate::error::RequestFault;
use crate::listen::{OwnerShares, TRANSFER_BYTES_MIN, TransferPermit};
use crate::request::identity;
use crate::state::AppState;

/// The most bytes beyond the limit that are read and discarded before the connection is closed.
const DISCARD_BYTES_MAX: usize = 16 << 20;

/// The most characters of a parse error in the response: the error may repeat the client's text.
const ECHO_CHARS_MAX: usize = 200;

/// The extractor of a JSON body.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<AppState> for JsonBody<T> {
    type Rejection = RequestFault;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, RequestFault> {
        let (parts, body) = request.into_parts();
        let gate = TransferGate::new(
            &state.streams.transfers,
            identity::caller(&parts)?.owner.clone(),
        );
        // The gate is held while the body is in memory as bytes.
        let (bytes, gate) = read_body(&parts.headers, body, &state.config.http, gate).await?;
        if bytes.len() as u64 <= TRANSFER_BYTES_MIN {
            return parse(&parts.headers, &bytes).map(Self);
        }
        let owner = gate.owner.clone();
        let parsed = state.parse_slots.run(&owner, move || {
            let _held = gate;
            parse(&parts.headers, &bytes)
        });
        parsed.await?.map(Self)
    }
}

/// Counts a body as a transfer of its owner once it is large: at its announced length; without one it
/// counts, as soon as it is large, for as much as it may become.
struct TransferGate {
    shares: OwnerShares,
    owner: Owner,
    permit: Option<TransferPermit>,
}

impl TransferGate {
    fn new(shares: &OwnerShares, owner: Owner) -> Self {
        Self {
            shares: shares.clone(),
            owner,
            permit: None,
        }
    }

    /// Counts a body that has or will have `bytes`.
    fn count(&mut self, bytes: usize) -> Result<(), RequestFault> {
        if self.permit.is_none() {
            self.permit = self.shares.acquire_body(&self.owner, bytes as u64)?;
        }
        Ok(())
    }

    /// Counts a body of which `arrived` bytes are here and at most `max` will be.
    fn count_arrived(&mut self, arrived: usize, max: usize) -> Result<(), RequestFault> {
        match arrived as u64 > TRANSFER_BYTES_MIN {
            true => self.count(max),
            false => Ok(()),
        }
    }
}

/// Reads a whole body within the size and time limits of `limits`. A body that is refused is read to
/// its end without being kept, unless the client waits for a response before it sends it.
async fn read_body(
    headers: &HeaderMap,
    body: Body,
    limits: &Http,
    mut gate: TransferGate,
) -> Result<(Bytes, TransferGate), RequestFault> {
    let max = limits.body_max_bytes;
    let timeout = Duration::from_millis(limits.body_timeout_ms);
    let announced = single_value(headers, header::CONTENT_LENGTH).ok().flatten();
    let length = body.size_hint().exact();
    let length = length.or_else(|| announced?.parse().ok());
    let length = length.map(|bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX));
    let refusal = match length {
        Some(bytes) if bytes > max => Some(too_large(max)),
        Some(bytes) => gate.count(bytes).err(),
        None => None,
    };
    let has_expect = headers.contains_key(header::EXPECT);
    if let Some(fault) = refusal.clone().filter(|_| has_expect) {
        return Err(fault);
    }
    match tokio::time::timeout(timeout, read_up_to(body, max, &mut gate, refusal)).await {
        Err(_) => {
            let detail = format!("The body took longer than {} ms.", limits.body_timeout_ms);
            Err(RequestFault::new(Code::RequestTimeout, detail))
        }
        Ok(Err(_)) => Err(RequestFault::new(
            Code::MalformedJson,
            "The connection broke before the end of the body.",
        )),
        Ok(Ok(read)) => Ok((read?, gate)),
    }
}

fn too_large(max: usize) -> RequestFault {
    let detail = format!("The body may have at most {max} bytes.");
    RequestFault::new(Code::BodyTooLarge, detail).with("limit_bytes", max)
}

/// Reads a body of at most `max` bytes. From its refusal on it is discarded.
async fn read_up_to(
    mut body: Body,
    max: usize,
    gate: &mut TransferGate,
    mut refusal: Option<RequestFault>,
) -> Result<Result<Bytes, RequestFault>, axum::Error> {
    let mut content = Vec::new();
    let mut bytes_read = 0usize;
    while let Some(frame) = body.frame().await {
        let frame = frame?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        bytes_read = bytes_read.saturating_add(data.len());
        if refusal.is_none() {
            refusal = match bytes_read > max {
                true => Some(too_large(max)),
                false => gate.count_arrived(bytes_read, max).err(),
            };
        }
        if refusal.is_none() {
            content.extend_from_slice(data);
        } else if bytes_read > max.saturating_add(DISCARD_BYTES_MAX) {
            break;
        } else {
            content = Vec::new();
        }
    }
    Ok(refusal.map_or_else(|| Ok(content.into()), Err))
}

/// Checks the content type and parses the bytes of a body.
fn parse<T: DeserializeOwned>(headers: &HeaderMap, bytes: &[u8]) -> Result<T, RequestFault> {
    if bytes.is_empty() {
        return serde_json::from_slice(b"{}").map_err(|error| parse_fault(&error));
    }
    let content_type = single_value(headers, header::CONTENT_TYPE).ok().flatten();
    let media_type = content_type.and_then(|text| text.split(';').next());
    let media_type = media_type.map(str::trim);
    if !media_type.is_some_and(|text| text.eq_ignore_ascii_case("application/json")) {
        return Err(RequestFault::new(
            Code::UnsupportedMediaType,
            "Send the body as Content-Type: application/json.",
        ));
    }
    if !starts_as_object(bytes) {
        // serde also accepts an array for a struct, with the fields in order.
        let parsed = serde_json::from_slice::<IgnoredAny>(bytes);
        let detail = "The body must be a JSON object.";
        return Err(parsed.map_or_else(
            |error| parse_fault(&error),
            |_| RequestFault::new(Code::InvalidRequest, detail),
        ));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        // A syntax error takes precedence over an invalid field that precedes it.
        let parsed = serde_json::from_slice::<IgnoredAny>(bytes);
        parse_fault(&parsed.err().unwrap_or(error))
    })
}

/// True if the first character is that of a JSON object.
fn starts_as_object(bytes: &[u8]) -> bool {
    bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
}

/// The [`RequestFault`] for an error of the JSON parser, with the line and column.
fn parse_fault(error: &serde_json::Error) -> RequestFault {
    // serde_json reports column 0 if the body ends with a line break before the JSON is complete.
    let (line, column) = (error.line(), error.column().max(1));
    let with_location = |fault: RequestFault| fault.with("line", line).with("column", column);
    match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => with_location(RequestFault::new(
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
                return with_location(
                    RequestFault::new(Code::UnknownField, detail).with("field", name),
                );
            }
            let text: String = text.chars().take(ECHO_CHARS_MAX).collect();
            let fault = RequestFault::new(
                Code::InvalidRequest,
                format!("The body does not fit: {text}."),
            );
            // A missing field has no location in the body.
            if text.starts_with("missing field") {
                fault
            } else {
                with_location(fault)
            }
        }
    }
}

#[cfg(test)]
mod tests;
