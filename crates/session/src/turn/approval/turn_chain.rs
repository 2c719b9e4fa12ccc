//! The chain of turns that a decision resumes: the paused turn, and the turns that it resumed in
//! turn, with their messages and the request that the next turn inherits.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use turnwire_event::body::turn::TurnStarted;
use turnwire_event::code::{Origin, TurnKind};
use turnwire_event::row::TurnRow;
use turnwire_event::{Body, Event, JsonObject, Message, Position, Role, Seq, SessionId, TurnId};
use turnwire_log::{EventSelection, Log, MessageView, PageBounds, ReadError, ReadLimits, Store};

use crate::error::Error;
use crate::history::select::{RESUMES, SizedMessage, with_size};
use crate::submit::request::{DisconnectScope, SubmitRequest};

/// The bounds of a chain. Earlier turns are left out, except the message that opened the first one:
/// a model reads what the person wants.
#[derive(Clone, Copy)]
struct ChainBounds {
    /// Turns whose messages are read.
    turns: usize,
    /// Bytes of the messages.
    bytes: usize,
    /// Turns that are looked up to find the first one.
    lookups: usize,
}

/// A person who was asked for approval 256 times in a row talks with a model that has lost the middle.
/// 8 MiB are, at four bytes a token, the two million tokens that the largest models read at once.
/// 4,096 lookups take a tenth of a second.
const CHAIN_BOUNDS: ChainBounds = ChainBounds {
    turns: 256,
    bytes: 8 << 20,
    lookups: 4096,
};

/// The messages of a turn that are read at once.
const MESSAGE_PAGE: PageBounds = PageBounds {
    rows: 64,
    bytes: 1 << 20,
};

/// The locale of a turn whose `turn.started` was removed by retention.
const DEFAULT_LOCALE: &str = "en";

/// What the turn that resumes a paused one inherits.
pub(crate) struct TurnChain {
    pub(crate) request: SubmitRequest,
    /// The paused turn and the turns that it resumed.
    pub(crate) turns: HashSet<TurnId>,
    /// The messages of the paused turn, and of the turns before it within [`CHAIN_BOUNDS`].
    pub(crate) messages: Vec<SizedMessage>,
}

impl TurnChain {
    /// Reads the chain of `paused` up to the position `upto`.
    pub(crate) fn read(store: &dyn Store, paused: &TurnRow, upto: Position) -> Result<Self, Error> {
        Self::read_within(store, paused, upto, CHAIN_BOUNDS)
    }

    fn read_within(
        store: &dyn Store,
        paused: &TurnRow,
        upto: Position,
        bounds: ChainBounds,
    ) -> Result<Self, Error> {
        let session = paused.session_id;
        let mut rows = vec![paused.clone()];
        let mut first = paused.clone();
        for lookup in 1..bounds.lookups {
            let previous = match first.resumes {
                Some(previous) => store.turn(previous)?,
                None => None,
            };
            let Some((_, row)) = previous else { break };
            if lookup < bounds.turns {
                rows.push(row.clone());
            }
            first = row;
        }
        let mut turns: HashSet<_> = rows.iter().map(|row| row.id).collect();
        let mut newest_first: Vec<SizedMessage> = Vec::new();
        let mut bytes_left = bounds.bytes;
        for row in &rows {
            let read = TurnMessages::read(store, row, upto, bytes_left)?;
            if read.is_cut && row.id != paused.id {
                break;
            }
            bytes_left = bytes_left.saturating_sub(read.bytes);
            newest_first.extend(read.newest_first);
        }
        let oldest_turn = newest_first.last().map(|(oldest, _)| oldest.turn_id);
        if oldest_turn != Some(first.id)
            && let Some(opening) = read_opening(store, &first)?
        {
            if let Some((oldest, _)) = newest_first.last_mut() {
                resume_first(oldest, first.id);
            }
            turns.insert(first.id);
            newest_first.push(opening);
        }
        let of_user = |(message, _): &&SizedMessage| {
            message.turn_id == paused.id && message.role == Role::User
        };
        let user_message = newest_first.iter().find(of_user);
        let user_message = user_message.map(|(message, _)| message.as_ref());
        let started = read_started(store, session, paused.started.seq)?;
        let request = inherited_request(paused, started, user_message);
        let messages = newest_first.into_iter().rev().collect();
        Ok(Self {
            request,
            turns,
            messages,
        })
    }
}

/// The messages of one turn of a chain.
#[derive(Default)]
struct TurnMessages {
    newest_first: Vec<SizedMessage>,
    bytes: usize,
    /// Whether messages between the opening one and the newest were left out.
    is_cut: bool,
}

impl TurnMessages {
    /// Reads the newest messages of a turn within `bytes_max`, and its opening message whatever its
    /// size: a model gets no turn without it. The message with the tool uses is among the newest.
    fn read(
        store: &dyn Store,
        turn: &TurnRow,
        upto: Position,
        bytes_max: usize,
    ) -> Result<Self, Error> {
        let (session, upto) = (turn.session_id, turn.ended.unwrap_or(upto));
        let mut this = Self::default();
        let mut before = None;
        loop {
            let view = MessageView::Orchestrator;
            let page = store.messages(session, view, upto, before, MESSAGE_PAGE)?;
            before = page.rows.first().map(|oldest| oldest.id);
            // A turn that was withdrawn meanwhile has a message between those of the turn.
            let rows = page.rows.into_iter().rev();
            for message in rows.filter(|message| message.turn_id == turn.id) {
                let is_opening = message.role == Role::User;
                let sized = with_size(message);
                this.is_cut |= !is_opening && this.bytes.saturating_add(sized.1) > bytes_max;
                if is_opening || !this.is_cut {
                    this.bytes += sized.1;
                    this.newest_first.push(sized);
                }
                if is_opening {
                    this.is_cut |= this.bytes > bytes_max;
                    return Ok(this);
                }
            }
            if !page.has_more {
                return Ok(this);
            }
        }
    }
}

/// The message that opened a turn.
fn read_opening(store: &dyn Store, turn: &TurnRow) -> Result<Option<SizedMessage>, Error> {
    let (view, newest) = (MessageView::Orchestrator, PageBounds { rows: 1, bytes: 0 });
    // It is the last message up to the start of the turn.
    let page = store.messages(turn.session_id, view, turn.started, None, newest)?;
    let of_turn = |message: &Message| message.turn_id == turn.id && message.role == Role::User;
    Ok(page.rows.into_iter().find(of_turn).map(with_size))
}

/// Lets the oldest turn that was read resume the first one, because the turns between are left out:
/// the selection of a history keeps a turn and those that resume it together.
fn resume_first(opening: &mut Arc<Message>, first: TurnId) {
    let metadata = &mut Arc::make_mut(opening).metadata;
    metadata.set(RESUMES, &first.to_string().into());
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
    let mut metadata =
        user_message.map_or_else(JsonObject::default, |message| message.metadata.clone());
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

#[cfg(test)]
mod tests;
