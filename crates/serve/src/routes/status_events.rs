//! `/status-events`: the statuses of the pack in force, with how often each was emitted.

use std::collections::HashMap;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_pack::StatusLifecycle;
use turnwire_render::{StatusEntry, status_list};
use turnwire_wire::budget::cut_to_fit;
use turnwire_wire::problem::Code;
use turnwire_wire::rest::status_event::{Emissions, LifecycleState, StatusEvent, StatusEvents};

use crate::error::RequestFault;
use crate::request::{Identity, QueryParams};
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/status-events", get(list))
}

async fn list(
    State(state): State<AppState>,
    Identity(owner): Identity,
    mut params: QueryParams,
) -> Result<Json<StatusEvents>, RequestFault> {
    let sizes = &state.config.session;
    let limit = params.take_limit(sizes.list_page, sizes.list_page_max)?;
    let after = params.take("after")?;
    params.refuse_rest()?;
    let Some(host) = &state.host else {
        return Ok(Json(StatusEvents::default()));
    };
    let pack = host.pack();
    let counts = state.service.reader().status_counts(&owner).await?;
    let counts = counts.into_iter().map(|count| {
        let (total, days) = (count.total, count.days.into_iter().collect());
        (count.event_id, Emissions { total, days })
    });
    let mut counts: HashMap<String, Emissions> = counts.collect();
    let entry_body = |entry: StatusEntry| {
        let emissions = counts.remove(&entry.id).unwrap_or_default();
        status_event(entry, emissions)
    };
    let entries = status_list(&pack);
    let start = match after {
        None => 0,
        Some(after) => {
            let at = entries.iter().position(|entry| entry.id == after);
            let detail = "after is not a cursor that this server has given.";
            at.ok_or_else(|| RequestFault::new(Code::InvalidCursor, detail).with("field", "after"))?
                + 1
        }
    };
    let mut rest = entries.into_iter().skip(start);
    let mut status_events: Vec<_> = rest.by_ref().take(limit).map(entry_body).collect();
    let bytes_max = state.config.http.answer_max_bytes;
    let is_cut = cut_to_fit(&mut status_events, bytes_max) || rest.next().is_some();
    let last = status_events.last().filter(|_| is_cut);
    Ok(Json(StatusEvents {
        version: pack.registry.version.clone(),
        next: last.map(|status| status.id.clone()),
        status_events,
    }))
}

fn status_event(entry: StatusEntry, emissions: Emissions) -> StatusEvent {
    let texts = entry.texts.into_iter();
    StatusEvent {
        id: entry.id,
        description: entry.description,
        default_render_key: entry.render_key,
        default_policy: entry.policy,
        emitter_subagents: entry.emitters,
        lifecycle: match entry.lifecycle {
            StatusLifecycle::Active => LifecycleState::Active,
            StatusLifecycle::Deprecated => LifecycleState::Deprecated,
        },
        note: entry.note,
        fragment: entry.fragment,
        messages: texts.map(|text| (text.locale, text.message)).collect(),
        emissions,
    }
}
