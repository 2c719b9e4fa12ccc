//! `/sessions/{id}/events`: the log, byte for byte as it is stored.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use turnwire_event::{EventFilter, FilterSpec, TypeSet};
use turnwire_session::{EventLogQuery, EventPage, SessionQuotas, SessionReader};
use turnwire_wire::problem::Code;
use turnwire_wire::rest::event::{EventHashes, write};

use super::quota_headers;
use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::{QueryParams, ReadingCaller, SessionPath};
use crate::state::AppState;

pub(super) fn router(state: &AppState) -> Router<AppState> {
    let reads = from_fn_with_state(state.clone(), quota_headers::of_reads);
    Router::new().route("/sessions/{id}/events", get(list).layer(reads))
}

async fn list(
    State(reader): State<SessionReader>,
    State(quotas): State<SessionQuotas>,
    State(config): State<Arc<ServerConfig>>,
    caller: ReadingCaller,
    SessionPath(id): SessionPath,
    mut params: QueryParams,
) -> Result<Response, RequestFault> {
    let pages = &config.session;
    let since = params.take_cursor("since")?;
    let types = params.take("types")?.as_deref().map(types).transpose()?;
    let limit = params.take_limit(pages.events_page, pages.events_page_max)?;
    let hashes = params.take_flag("hashes")?;
    params.refuse_rest()?;
    let (limit, bytes_max) = page_limits(limit, pages.events_page_bytes, hashes);
    let query = EventLogQuery {
        since,
        types,
        limit,
        bytes_max,
    };
    let owner = &caller.0.owner;
    quotas.check_replay(owner)?;
    let page = reader.events(caller.viewer(), id, query).await?;
    let body = body(&page, hashes);
    quotas.charge_replay(owner, body.len());
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, body).into_response())
}

/// The size of what stands around the events of a page.
const PAGE_FRAME_BYTES: usize = 256;
/// A comma, and a hash with its quotes and comma.
const COMMA_BYTES: usize = 1;
const HASH_BYTES: usize = 67;
/// No event is smaller.
const EVENT_BYTES_MIN: usize = 256;

/// The number and the bytes of the events in a page of `page_bytes` in all.
fn page_limits(limit: usize, page_bytes: usize, hashes: bool) -> (usize, usize) {
    let limit = limit.min(page_bytes / EVENT_BYTES_MIN);
    let beside_event = COMMA_BYTES + if hashes { HASH_BYTES } else { 0 };
    let beside = PAGE_FRAME_BYTES + limit * beside_event;
    (limit, page_bytes.saturating_sub(beside))
}

fn body(page: &EventPage, hashes: bool) -> Vec<u8> {
    let bytes: usize = page.events.iter().map(|event| event.bytes.len() + 80).sum();
    let mut out = Vec::with_capacity(bytes + 128);
    let events = page.events.iter().map(|event| event.bytes.as_ref());
    let hashes = hashes.then(|| EventHashes {
        previous: &page.previous_hash,
        each: page.events.iter().map(|event| &event.hash).collect(),
    });
    write(events, page.next, hashes.as_ref(), &mut out);
    out
}

/// Parses type names between commas; the error names an unknown one.
fn types(text: &str) -> Result<TypeSet, RequestFault> {
    let spec = FilterSpec {
        event_types: Some(text.split(',').map(|name| name.trim().to_owned()).collect()),
        ..FilterSpec::default()
    };
    EventFilter::resolve(&spec)
        .map(|filter| filter.types())
        .map_err(|bad| {
            let detail = format!("types has an {bad}.");
            RequestFault::new(Code::InvalidFilter, detail).with("field", "types")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::EventType;

    #[test]
    fn page_with_everything_around_its_events_is_within_its_bytes() {
        for page_bytes in [1_024, 524_288, 67_108_864] {
            for (hashes, limit) in [(false, 1_000), (true, 1_000), (true, 100_000)] {
                let (limit, bytes) = page_limits(limit, page_bytes, hashes);
                assert!(limit > 0 && bytes > 0);
                let event = "x".repeat(bytes / limit);
                let mut out = Vec::new();
                let zero = [0; 32];
                let each = EventHashes {
                    previous: &zero,
                    each: vec![&zero; limit],
                };
                let events = std::iter::repeat_n(event.as_bytes(), limit);
                let next = "evt_00010000000002".parse().ok();
                write(events, next, hashes.then_some(&each), &mut out);
                assert!(out.len() <= page_bytes, "{} of {page_bytes}", out.len());
            }
        }
    }

    #[test]
    fn types_are_comma_separated_names() {
        let both: TypeSet = [EventType::TurnStarted, EventType::TurnCompleted]
            .into_iter()
            .collect();
        assert_eq!(types("turn.started,turn.completed"), Ok(both));
        assert_eq!(types(" turn.completed , turn.started"), Ok(both));
        for (bad, name) in [
            ("made.up.thing", "made.up.thing"),
            ("turn.started,", ""),
            ("", ""),
        ] {
            let detail = format!("types has an unknown event type {name:?}.");
            let fault = RequestFault::new(Code::InvalidFilter, detail).with("field", "types");
            assert_eq!(types(bad), Err(fault), "{bad}");
        }
    }
}
