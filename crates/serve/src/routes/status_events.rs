//! `/status-events`: the registry of the pack that runs, with how often each id was emitted.

use std::collections::{BTreeMap, HashMap};

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use turnwire_pack::StatusLifecycle as Life;
use turnwire_render::{StatusEntry, status_list};
use turnwire_session::SessionReader;
use turnwire_wire::rest::status_event::{Emissions, LifecycleState, StatusEvent, StatusEvents};

use crate::error::RequestFault;
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/status-events", get(list))
}

async fn list(
    State(state): State<AppState>,
    State(reader): State<SessionReader>,
) -> Result<Json<StatusEvents>, RequestFault> {
    let Some(host) = &state.host else {
        return Ok(Json(StatusEvents {
            version: String::new(),
            status_events: Vec::new(),
        }));
    };
    let pack = host.pack();
    let counts = reader.status_counts().await?;
    let mut counts: HashMap<String, Emissions> = counts
        .into_iter()
        .map(|count| {
            let emissions = Emissions {
                total: count.total,
                days: count.days.into_iter().collect::<BTreeMap<_, _>>(),
            };
            (count.event_id, emissions)
        })
        .collect();
    let entry_body = |entry: StatusEntry| {
        let emissions = counts.remove(&entry.id).unwrap_or_default();
        told(entry, emissions)
    };
    Ok(Json(StatusEvents {
        version: pack.registry.version.clone(),
        status_events: status_list(&pack).into_iter().map(entry_body).collect(),
    }))
}

fn told(entry: StatusEntry, emissions: Emissions) -> StatusEvent {
    let texts = entry.texts.into_iter();
    StatusEvent {
        id: entry.id,
        description: entry.description,
        default_render_key: entry.render_key,
        default_policy: entry.policy,
        emitter_subagents: entry.emitters,
        lifecycle: match entry.lifecycle {
            Life::Active => LifecycleState::Active,
            Life::Deprecated => LifecycleState::Deprecated,
        },
        note: entry.note,
        fragment: entry.fragment,
        messages: texts.map(|text| (text.locale, text.message)).collect(),
        emissions,
    }
}
