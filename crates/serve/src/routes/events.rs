//! `/sessions/{id}/events`: the log, byte for byte as it is stored.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use turnwire_event::{EventFilter, FilterSpec, TypeSet};
use turnwire_session::{EventLogQuery, EventPage, SessionReader};
use turnwire_wire::problem::Code;
use turnwire_wire::rest::event::{EventHashes, write};

use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::{Identity, QueryParams, SessionPath};
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/sessions/{id}/events", get(list))
}

async fn list(
    State(reader): State<SessionReader>,
    State(config): State<Arc<ServerConfig>>,
    Identity(owner): Identity,
    SessionPath(id): SessionPath,
    mut params: QueryParams,
) -> Result<Response, RequestFault> {
    let pages = &config.session;
    let query = EventLogQuery {
        since: params.take_cursor("since")?,
        types: params.take("types")?.as_deref().map(types).transpose()?,
        limit: params.take_limit(pages.events_page, pages.events_page_max)?,
        bytes_max: pages.events_page_bytes,
    };
    let hashes = params.take_flag("hashes")?;
    params.refuse_rest()?;
    let page = reader.events(&owner, id, query).await?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, body(&page, hashes)).into_response())
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
