//! The events of a stored session, replayed as to a client that connects late. The folder is only
//! read, also while a server writes to it.

use std::io::Write;

use anyhow::{Context as _, Result, bail};
use turnwire_event::fold::MessageFold;
use turnwire_event::fold::replay::ReplayRange;
use turnwire_event::{Event, Position, Seq, SessionId, TurnId};
use turnwire_log::sqlite::SqliteStore;
use turnwire_log::{LogTail, MessageRecords as _, ReadError, TurnRecords as _};
use turnwire_session::read_chunk;

use super::projection::WireProjection;
use crate::session_source::tail;

/// The number of persisted events that are read at once.
const CHUNK: usize = 512;

/// Projects a session, or one turn of it, up to the current end of the log.
pub(crate) fn replay(
    store: &SqliteStore,
    session: SessionId,
    turn: Option<TurnId>,
    projection: &mut WireProjection,
    out: &mut impl Write,
) -> Result<()> {
    let tail = tail(store, session)?;
    let in_flight = in_flight(store, session, &tail)?;
    let in_flight = in_flight.as_ref();
    let (since, mut upto) = range(store, session, turn, &tail, in_flight)?;
    let finished = projection.finished_replay();
    let mut from = since;
    let mut damaged = None;
    while from < upto {
        let remaining = ReplayRange {
            since,
            upto,
            from,
            to: upto,
        };
        let chunk = match read_chunk(
            store,
            session,
            remaining,
            (CHUNK, None),
            in_flight,
            finished,
        ) {
            // A read fails at a damaged record: replay up to it, then report it.
            Err(ReadError::Damaged { seq, .. }) if damaged.is_none() => {
                damaged = Some(seq);
                upto = Position::persisted(tail.epoch, Seq(seq.saturating_sub(1)));
                continue;
            }
            chunk => chunk?,
        };
        let mut bytes = Vec::new();
        for (head, stored) in &chunk.0 {
            let event = Event::read(stored).with_context(|| head.position.to_string())?;
            projection.project(stored, &event, &mut bytes);
        }
        out.write_all(&bytes)?;
        from = chunk.1;
    }
    match damaged {
        None => Ok(()),
        Some(seq) => bail!("record {seq} does not match its hash; see `turnwire verify`"),
    }
}

/// The range to replay: everything that is stored, or one turn.
fn range(
    store: &SqliteStore,
    session: SessionId,
    turn: Option<TurnId>,
    tail: &LogTail,
    in_flight: Option<&MessageFold>,
) -> Result<(Position, Position)> {
    let since = Position::persisted(tail.epoch, tail.low);
    // The text of the message in flight is after the last record.
    let mut cuts = in_flight.iter().flat_map(|fold| fold.cuts.iter().rev());
    let last_cut = cuts.find(|cut| cut.at.seq <= tail.seq);
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
    let before = Seq(row.started.seq.0.saturating_sub(1));
    let since = since.max(Position::persisted(tail.epoch, before));
    Ok((since, row.ended.map_or(upto, |end| upto.min(end))))
}

/// The [`MessageFold`] of the message in flight, as far as it is stored, unless it starts after the
/// tail.
fn in_flight(
    store: &SqliteStore,
    session: SessionId,
    tail: &LogTail,
) -> Result<Option<MessageFold>> {
    let open = store.open_turns()?;
    let Some(turn) = open.iter().find(|turn| turn.session_id == session) else {
        return Ok(None);
    };
    let fold = MessageFold::from_parts(&store.message_checkpoints(turn.id)?);
    Ok(fold.filter(|fold| fold.started.seq <= tail.seq))
}
