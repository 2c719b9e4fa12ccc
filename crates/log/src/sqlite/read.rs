//! Reading the log itself: events in order, checked against the chain.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter, types::Value};
use turnwire_event::{Epoch, Filter, Head, Position, Seq, SessionId, Timestamp};

use crate::chain::Hash;
use crate::error::ReadError;
use crate::record::{StoredEvent, Tail};

/// The row number of a session with its low-water mark.
fn session(c: &Connection, id: SessionId) -> Result<Option<(i64, Epoch, Seq, Hash)>, ReadError> {
    let found = c
        .prepare_cached("SELECT sid, epoch, low_seq, low_hash FROM session WHERE id = ?1")?
        .query_row([id.to_string()], |row| {
            let low_hash: Vec<u8> = row.get(3)?;
            Ok((
                row.get(0)?,
                Epoch(row.get(1)?),
                Seq(row.get::<_, i64>(2)? as u64),
                Hash::stored(&low_hash),
            ))
        })
        .optional()?;
    Ok(found)
}

fn known(c: &Connection, id: SessionId) -> Result<(i64, Epoch, Seq, Hash), ReadError> {
    session(c, id)?.ok_or(ReadError::Gone)
}

/// Where a session's log stands.
pub(crate) fn tail(c: &Connection, id: SessionId) -> Result<Option<Tail>, ReadError> {
    let Some((sid, epoch, low, low_hash)) = session(c, id)? else {
        return Ok(None);
    };
    let last = c
        .prepare_cached(
            "SELECT seq, hash, time FROM event WHERE sid = ?1 ORDER BY seq DESC LIMIT 1",
        )?
        .query_row([sid], |row| {
            let bytes: Vec<u8> = row.get(1)?;
            Ok((
                Seq(row.get::<_, i64>(0)? as u64),
                Hash::stored(&bytes),
                Timestamp::from_millis(row.get(2)?),
            ))
        })
        .optional()?;
    let (seq, hash, time) = last.unwrap_or((low, low_hash, Timestamp::from_millis(0)));
    Ok(Some(Tail {
        epoch,
        seq,
        hash,
        time,
        low,
        low_hash,
    }))
}

/// The hash at `seq`.
pub(crate) fn hash_at(c: &Connection, id: SessionId, seq: Seq) -> Result<Hash, ReadError> {
    let (sid, _, low, low_hash) = known(c, id)?;
    hash_of(c, id, (sid, low, low_hash), seq)
}

fn hash_of(
    c: &Connection,
    id: SessionId,
    at: (i64, Seq, Hash),
    seq: Seq,
) -> Result<Hash, ReadError> {
    if seq < at.1 {
        return Err(ReadError::Trimmed { low: at.1.0 });
    }
    if seq == at.1 {
        return Ok(at.2);
    }
    let bytes: Option<Vec<u8>> = c
        .prepare_cached("SELECT hash FROM event WHERE sid = ?1 AND seq = ?2")?
        .query_row([at.0, seq.0 as i64], |row| row.get(0))
        .optional()?;
    bytes.map(|b| Hash::stored(&b)).ok_or(ReadError::Damaged {
        session: id,
        seq: seq.0,
    })
}

/// Events in order; every one is checked against the one before.
pub(crate) fn events(
    c: &Connection,
    id: SessionId,
    after: Seq,
    upto: Seq,
    limit: usize,
) -> Result<Vec<StoredEvent>, ReadError> {
    let (sid, _, low, low_hash) = known(c, id)?;
    let mut link = hash_of(c, id, (sid, low, low_hash), after)?;
    let mut expected = after.next();
    let mut statement = c.prepare_cached(
        "SELECT seq, type, turn, actor, hidden, hash, bytes FROM event \
         WHERE sid = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4",
    )?;
    let mut rows = statement.query(params![
        sid,
        after.0 as i64,
        upto.0.min(i64::MAX as u64) as i64,
        limit as i64
    ])?;
    let mut out = Vec::with_capacity(limit.min(512));
    while let Some(row) = rows.next()? {
        let seq = Seq(row.get::<_, i64>(0)? as u64);
        let damaged = || ReadError::Damaged {
            session: id,
            seq: seq.0,
        };
        // A column of the wrong type is damage too.
        let event = stored(row, seq).ok().flatten().ok_or_else(damaged)?;
        link = link.next(&event.bytes);
        if seq != expected || link.0 != event.hash {
            return Err(damaged());
        }
        expected = seq.next();
        out.push(event);
    }
    Ok(out)
}

fn stored(row: &Row<'_>, seq: Seq) -> rusqlite::Result<Option<StoredEvent>> {
    let bytes = Bytes::copy_from_slice(row.get_ref(6)?.as_bytes()?);
    let turn = match row.get_ref(2)?.as_str_or_null()? {
        None => None,
        Some(text) => match text.parse() {
            Ok(turn) => Some(turn),
            Err(_) => return Ok(None),
        },
    };
    let (Some(position), Ok(kind), Ok(actor)) = (
        position(&bytes),
        row.get_ref(1)?.as_str()?.parse(),
        row.get_ref(3)?.as_str()?.parse(),
    ) else {
        return Ok(None);
    };
    let head = Head {
        position,
        kind,
        turn,
        actor,
        suppressed: row.get(4)?,
    };
    Ok(Some(StoredEvent {
        seq,
        head,
        hash: Hash::stored(row.get_ref(5)?.as_bytes()?).0,
        bytes,
    }))
}

/// The id of an event from its bytes, which always begin with it; it keeps the epoch the event
/// was written in.
fn position(bytes: &[u8]) -> Option<Position> {
    let id = bytes.strip_prefix(b"{\"id\":\"")?.get(..18)?;
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// The number of the last event.
fn last(c: &Connection, sid: i64, low: Seq) -> Result<Seq, ReadError> {
    let seq: Option<i64> = c
        .prepare_cached("SELECT max(seq) FROM event WHERE sid = ?1")?
        .query_row([sid], |row| row.get(0))?;
    Ok(seq.map_or(low, |seq| Seq(seq as u64)))
}

/// How many events of a stretch are hidden from the filter: they have an index of their own, so
/// that a filter for every type needs no look at the others.
fn hidden(
    c: &Connection,
    sid: i64,
    (after, upto): (u64, u64),
    filter: &Filter,
) -> Result<u64, ReadError> {
    if filter.includes_suppressed() {
        return Ok(0);
    }
    let n: i64 = c
        .prepare_cached(
            "SELECT count(*) FROM event WHERE sid = ?1 AND seq > ?2 AND seq <= ?3 AND hidden = 1",
        )?
        .query_row(params![sid, after as i64, upto as i64], |row| row.get(0))?;
    Ok(n as u64)
}

/// How many events pass the filter, by the columns alone.
pub(crate) fn count(
    c: &Connection,
    id: SessionId,
    after: Seq,
    upto: Seq,
    filter: &Filter,
) -> Result<u64, ReadError> {
    let (sid, _, low, _) = known(c, id)?;
    if after < low {
        return Err(ReadError::Trimmed { low: low.0 });
    }
    if filter.passes_all(Filter::full().types()) {
        let (after, upto) = (after.0, upto.0.min(last(c, sid, low)?.0));
        return Ok(upto.saturating_sub(after) - hidden(c, sid, (after, upto), filter)?);
    }
    let types: Vec<&str> = filter
        .types()
        .iter()
        .filter(|t| t.is_persisted())
        .map(|t| t.name())
        .collect();
    if types.is_empty() || after >= upto {
        return Ok(0);
    }
    let marks = vec!["?"; types.len()].join(",");
    let hidden = if filter.includes_suppressed() {
        ""
    } else {
        "AND hidden = 0"
    };
    let range = [
        Value::from(sid),
        Value::from(after.0 as i64),
        Value::from(upto.0 as i64),
    ];
    let words = types.iter().map(|t| Value::from((*t).to_owned()));
    let values = params_from_iter(range.into_iter().chain(words));
    let from =
        format!("FROM event WHERE sid = ? AND seq > ? AND seq <= ? AND type IN ({marks}) {hidden}");
    let Some(actors) = filter.actors() else {
        let n: i64 = c
            .prepare_cached(&format!("SELECT count(*) {from}"))?
            .query_row(values, |row| row.get(0))?;
        return Ok(n as u64);
    };
    let mut statement =
        c.prepare_cached(&format!("SELECT actor, count(*) {from} GROUP BY actor"))?;
    let mut rows = statement.query(values)?;
    let mut total = 0;
    while let Some(row) = rows.next()? {
        let passes = row
            .get_ref(0)
            .ok()
            .and_then(|actor| actor.as_str().ok()?.parse::<turnwire_event::Actor>().ok())
            .is_some_and(|actor| actors.iter().any(|wanted| actor.matches(wanted)));
        total += if passes {
            row.get::<_, i64>(1)? as u64
        } else {
            0
        };
    }
    Ok(total)
}
