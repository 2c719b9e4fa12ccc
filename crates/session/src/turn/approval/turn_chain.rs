//! The chain of turns that a decision resumes: the paused turn, and the turns that it resumed in
//! turn, with their messages and the request that the next turn inherits.

use std::collections::HashSet;

use serde_json::{Map, Value};
use turnwire_event::body::turn::TurnStarted;
use turnwire_event::code::{Origin, TurnKind};
use turnwire_event::row::TurnRow;
use turnwire_event::{Body, Event, Message, Position, Role, Seq, SessionId, TurnId};
use turnwire_log::{EventSelection, Log, MessageView, ReadError, ReadLimits, Store};

use crate::error::Error;
use crate::history::select::{RESUMES, SizedMessage, with_sizes};
use crate::submit::request::{DisconnectScope, SubmitRequest};

/// Turns in one chain: a person who was asked for approval so often in a row talks with a model
/// that has lost the beginning.
const CHAIN_MAX: usize = 256;

/// The locale of a turn whose `turn.started` was removed by retention.
const DEFAULT_LOCALE: &str = "en";

/// What the turn that resumes a paused one inherits.
pub(crate) struct TurnChain {
    pub(crate) request: SubmitRequest,
    /// The paused turn and the turns that it resumed.
    pub(crate) turns: HashSet<TurnId>,
    /// All messages of `turns`.
    pub(crate) messages: Vec<SizedMessage>,
}

impl TurnChain {
    /// Reads the chain of `paused` up to the position `upto`.
    pub(crate) fn read(store: &dyn Store, paused: &TurnRow, upto: Position) -> Result<Self, Error> {
        let session = paused.session_id;
        let mut turns = HashSet::from([paused.id]);
        let mut first = paused.clone();
        while let Some(previous) = first.resumes.filter(|_| turns.len() < CHAIN_MAX) {
            let Some((_, row)) = store.turn(previous)? else {
                break;
            };
            turns.insert(previous);
            first = row;
        }
        let from = first.started.before();
        let mut stored = store.messages_since(session, MessageView::Orchestrator, from, upto)?;
        stored.retain(|stored| turns.contains(&stored.message.turn_id));
        let of_user =
            |message: &&Message| message.turn_id == paused.id && message.role == Role::User;
        let user_message = stored.iter().map(|stored| &stored.message).find(of_user);
        let started = read_started(store, session, paused.started.seq)?;
        let request = inherited_request(paused, started, user_message);
        let messages = with_sizes(stored).collect();
        Ok(Self {
            request,
            turns,
            messages,
        })
    }
}

/// The `turn.started` at `at`, unless retention has removed it.
fn read_started(log: &dyn Log, session: SessionId, at: Seq) -> Result<Option<TurnStarted>, Error> {
    let all = EventSelection::all();
    let stored = match log.read(session, at.prev(), at, &all, ReadLimits::ONE) {
        Err(ReadError::Trimmed { .. }) => return Ok(None),
        read => read?.events,
    };
    let event = stored.first().and_then(|it| Event::read(&it.bytes).ok());
    Ok(event.and_then(|event| match event.body {
        Body::TurnStarted(started) => Some(started),
        _ => None,
    }))
}

/// The request of the paused turn without its content.
fn inherited_request(
    paused: &TurnRow,
    started: Option<TurnStarted>,
    user_message: Option<&Message>,
) -> SubmitRequest {
    let mut metadata = user_message.map_or_else(Map::new, |message| message.metadata.clone());
    metadata.remove(RESUMES);
    let location = match metadata.remove("location") {
        Some(Value::String(location)) => Some(location),
        _ => None,
    };
    let origin = match paused.kind {
        TurnKind::Scheduled => Origin::Scheduled,
        TurnKind::Chat | TurnKind::Mission | TurnKind::Worker => Origin::Chat,
    };
    let started = started.as_ref();
    let locale = started.map_or(DEFAULT_LOCALE, |started| &started.locale);
    SubmitRequest {
        on_disconnect: paused.on_disconnect,
        disconnect_grace_ms: paused.disconnect_grace_ms,
        wire_version: paused.wire_version.clone().unwrap_or_default(),
        metadata,
        location,
        // Nobody streams the turn before it exists: it runs until a stream came and left.
        disconnect_scope: DisconnectScope::Stream,
        origin: started.and_then(|started| started.origin).unwrap_or(origin),
        dm_type: started.and_then(|started| started.dm_type.clone()),
        ..SubmitRequest::unattended(locale.to_owned())
    }
}
