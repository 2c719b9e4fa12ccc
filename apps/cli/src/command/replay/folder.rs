//! Replays a stored session from a data folder, as a server replays it to a client that has seen no
//! event of it. The folder is only read, also while a server writes to it.

use std::borrow::Cow;
use std::io::Write;

use anyhow::{Context as _, Result, bail};
use turnwire_event::fold::MessageFold;
use turnwire_event::fold::replay::ReplayRange;
use turnwire_event::{Event, Position, Seq, SessionId, TurnId};
use turnwire_log::sqlite::SqliteStore;
use turnwire_log::{
    LogTail, MessageRecords as _, ReadError, ReadLimits, SessionRecords as _, TurnRecords as _,
};
use turnwire_session::read_chunk;

use super::projection::WireProjection;
use crate::args::TurnName;
use crate::session_source::tail;

/// The persisted events that are read at once.
const CHUNK: ReadLimits = ReadLimits {
    events: 512,
    bytes: 1 << 20,
    scanned: 512,
};

/// Projects a session, or one `turn` of it, up to the current end of the log, and writes the frames
/// to `out`. Fails at a damaged event, after the events before it.
pub(crate) fn replay(
    store: &SqliteStore,
    session: SessionId,
    turn: Option<TurnId>,
    projection: &mut WireProjection,
    out: &mut impl Write,
) -> Result<()> {
    let tail = tail(store, session)?;
    let in_flight = message_in_flight(store, session, &tail)?;
    let in_flight = in_flight.as_ref();
    let (since, mut upto) = replay_bounds(store, session, turn, &tail, in_flight)?;
    let finished_replay = projection.finished_replay();
    let mut from = since;
    let mut damaged_seq = None;
    while from < upto {
        let remaining = ReplayRange {
            since,
            upto,
            from,
            to: upto,
        };
        let (events, chunk_end) = match read_chunk(
            store,
            session,
            remaining,
            (CHUNK, None),
            &|to| {
                in_flight
                    .filter(|message| message.started <= to)
                    .map(Cow::Borrowed)
            },
            finished_replay,
        ) {
            // A read fails at a damaged event: replay up to it, then report it.
            Err(ReadError::Damaged { seq, .. }) if damaged_seq.is_none() => {
                damaged_seq = Some(seq);
                upto = Position::persisted(tail.epoch, Seq(seq.saturating_sub(1)));
                continue;
            }
            chunk => chunk?,
        };
        let mut bytes = Vec::new();
        for (head, stored) in &events {
            let event = Event::read(stored).with_context(|| head.position.to_string())?;
            projection.project(stored, &event, &mut bytes);
        }
        out.write_all(&bytes)?;
        from = chunk_end;
    }
    match damaged_seq {
        None => Ok(()),
        Some(seq) => bail!("record {seq} does not match its hash; see `turnwire verify`"),
    }
}

/// The turn that `name` names. The response id of an upstream is one of the session's owner.
pub(crate) fn find_turn(
    store: &SqliteStore,
    session: SessionId,
    name: &TurnName,
) -> Result<TurnId> {
    let id = match name {
        TurnName::Turn(turn) => return Ok(*turn),
        TurnName::Upstream(id) => id,
    };
    let row = store.session(session)?;
    let owner = row.map(|row| row.owner);
    let owner = owner.with_context(|| format!("there is no session {session}"))?;
    let turn = store.turn_of_response(&owner, id)?;
    turn.with_context(|| format!("there is no turn {id} in this session"))
}

/// The positions `(since, upto)` of the events to replay: those after `since`, up to and including
/// `upto`. They are all stored events, or those of `turn`.
fn replay_bounds(
    store: &SqliteStore,
    session: SessionId,
    turn: Option<TurnId>,
    tail: &LogTail,
    in_flight: Option<&MessageFold>,
) -> Result<(Position, Position)> {
    let since = Position::persisted(tail.epoch, tail.low);
    // The deltas of the message in flight are after the last persisted event.
    let cuts = in_flight.iter().flat_map(|fold| fold.cuts.iter());
    let last_cut = cuts.take_while(|cut| cut.at.seq <= tail.seq).last();
    let upto = last_cut.map_or(tail.position(), |cut| cut.at.max(tail.position()));
    let Some(id) = turn else {
        if tail.low > Seq(0) {
            eprintln!("events 1…{} were trimmed by retention", tail.low.0);
        }
        return Ok((since, upto));
    };
    let row = store.turn(id)?.map(|(_, row)| row);
    let row = row.filter(|row| row.session_id == session);
    let row = row.with_context(|| format!("there is no turn {id} in this session"))?;
    let seq_before_turn = Seq(row.started.seq.0.saturating_sub(1));
    let since = since.max(Position::persisted(tail.epoch, seq_before_turn));
    Ok((since, row.ended.map_or(upto, |end| upto.min(end))))
}

/// The message that the session's open turn was streaming at `tail`, rebuilt from its checkpoints.
/// `None` if no turn is open or the message started after `tail`.
fn message_in_flight(
    store: &SqliteStore,
    session: SessionId,
    tail: &LogTail,
) -> Result<Option<MessageFold>> {
    let open_turns = store.open_turns()?;
    let Some(turn) = open_turns.iter().find(|turn| turn.session_id == session) else {
        return Ok(None);
    };
    let mut fold = MessageFold::from_parts(&store.message_checkpoints(turn.id)?);
    if let Some(fold) = &mut fold {
        fold.response_id.clone_from(&turn.response_id);
    }
    Ok(fold.filter(|fold| fold.started.seq <= tail.seq))
}
