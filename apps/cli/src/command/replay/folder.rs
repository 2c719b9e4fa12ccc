//! The events of a stored session, told as a client that comes late is told them; the folder is
//! only read, also while a server writes to it.

use std::io::Write;

use anyhow::{Context as _, Result, bail};
use turnwire_event::fold::MessageFold;
use turnwire_event::fold::replay::{FinishedReplay, ReplayRange};
use turnwire_event::{Event, Position, Seq, SessionId, TurnId};
use turnwire_log::{LogTail, ReadError, Records, Store, TurnRecords};
use turnwire_session::read_chunk;

use super::projection::Projection;

/// How many persisted events are read at once.
const CHUNK: usize = 512;

/// Tells a session, or one turn of it, up to where the log stands now.
pub(crate) fn tell(
    store: &dyn Store,
    session: SessionId,
    turn: Option<TurnId>,
    projection: &mut Projection,
    out: &mut impl Write,
) -> Result<()> {
    let tail = store.tail(session)?;
    let tail = tail.context("there is no such session in this folder")?;
    let in_flight = in_flight(store, session, &tail)?;
    let (since, mut upto) = way(store, session, turn, &tail, in_flight.as_ref())?;
    let mut at = since;
    let mut damaged = None;
    while at < upto {
        let remaining = ReplayRange {
            since,
            upto,
            from: at,
            to: upto,
        };
        let missed = projection.missed();
        let chunk = match read_chunk(
            store,
            session,
            remaining,
            (CHUNK, None),
            in_flight.as_ref(),
            missed,
        ) {
            // Reads stop at a damaged record: tell up to it, then say which one it is.
            Err(ReadError::Damaged { seq, .. }) if damaged.is_none() => {
                damaged = Some(seq);
                upto = Position::persisted(tail.epoch, Seq(seq.saturating_sub(1)));
                continue;
            }
            told => told?,
        };
        let mut bytes = Vec::new();
        for (head, stored) in &chunk.0 {
            let event = Event::read(stored).with_context(|| head.position.to_string())?;
            projection.take(stored, &event, &mut bytes);
        }
        out.write_all(&bytes)?;
        at = chunk.1;
    }
    match damaged {
        None => Ok(()),
        Some(seq) => bail!("record {seq} does not match its hash; see `turnwire verify`"),
    }
}

/// From where to where: all that is kept, or a turn.
fn way(
    store: &dyn TurnRecords,
    session: SessionId,
    turn: Option<TurnId>,
    tail: &LogTail,
    in_flight: Option<&MessageFold>,
) -> Result<(Position, Position)> {
    let mut since = Position::persisted(tail.epoch, tail.low);
    let mut upto = tail.position();
    // The words of the message in flight stand after the last record.
    let words =
        in_flight.and_then(|fold| fold.cuts.iter().rev().find(|cut| cut.at.seq <= tail.seq));
    upto = words.map_or(upto, |cut| upto.max(cut.at));
    if let Some(id) = turn {
        let row = store.turn(id)?.map(|(_, row)| row);
        let row = row.filter(|row| row.session_id == session);
        let row = row.with_context(|| format!("there is no turn {id} in this session"))?;
        let before = Seq(row.started.seq.0.saturating_sub(1));
        since = since.max(Position::persisted(tail.epoch, before));
        upto = row.ended.map_or(upto, |end| upto.min(end));
    } else if tail.low > Seq(0) {
        eprintln!("events 1…{} were trimmed by retention", tail.low.0);
    }
    Ok((since, upto))
}

/// The message in flight, as far as it is stored and does not outrun the tail.
fn in_flight(
    store: &dyn Records,
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

impl Projection {
    /// What of a finished message is told to someone who comes late.
    fn missed(&self) -> FinishedReplay {
        match self.is_worded() {
            true => FinishedReplay::Deltas,
            false => FinishedReplay::Ends,
        }
    }
}
