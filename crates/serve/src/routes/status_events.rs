//! `/status-events`: the statuses of the pack in force, with how often each was emitted.

use std::collections::HashMap;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_pack::StatusLifecycle;
use turnwire_render::{StatusEntry, status_list};
use turnwire_wire::rest::status_event::{Emissions, LifecycleState, StatusEvent, StatusEvents};

use crate::error::RequestFault;
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/status-events", get(list))
}

async fn list(State(state): State<AppState>) -> Result<Json<StatusEvents>, RequestFault> {
    let Some(host) = &state.host else {
        return Ok(Json(StatusEvents::default()));
    };
    let pack = host.pack();
    let counts = state.service.reader().status_counts().await?.into_iter();
    let counts = counts.map(|count| {
        let (total, days) = (count.total, count.days.into_iter().collect());
        (count.event_id, Emissions { total, days })
    });
    let mut counts: HashMap<String, Emissions> = counts.collect();
    let entry_body = |entry: StatusEntry| {
        let emissions = counts.remove(&entry.id).unwrap_or_default();
        status_event(entry, emissions)
    };
    Ok(Json(StatusEvents {
        version: pack.registry.version.clone(),
        status_events: status_list(&pack).into_iter().map(entry_body).collect(),
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
