//! The status table: how often each status was emitted, by day. A status may be removed from the
//! registry only after it has not been emitted for long enough (S1-073).

use rusqlite::{Connection, Transaction, params};
use turnwire_event::{Timestamp, UtcDay};

use crate::error::ReadError;
use crate::records::StatusCount;

/// Adds one emission on the day of `time`.
pub(crate) fn add(tx: &Transaction<'_>, event_id: &str, time: Timestamp) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO status_emissions (day, event_id, count) VALUES (?1, ?2, 1) \
         ON CONFLICT (event_id, day) DO UPDATE SET count = count + 1",
    )?
    .execute(params![UtcDay::of(time).to_string(), event_id])?;
    Ok(())
}

/// Every status that was ever emitted, each with its days from that of `since` on.
pub(crate) fn counts(c: &Connection, since: Timestamp) -> Result<Vec<StatusCount>, ReadError> {
    let from = UtcDay::of(since).to_string();
    let mut statement = c.prepare_cached(
        "SELECT event_id, day, count FROM status_emissions ORDER BY event_id, day",
    )?;
    let mut rows = statement.query([])?;
    let mut counts: Vec<StatusCount> = Vec::new();
    while let Some(row) = rows.next()? {
        let event_id: String = row.get(0)?;
        let (day, count): (String, i64) = (row.get(1)?, row.get(2)?);
        let count = u64::try_from(count).unwrap_or(0);
        if counts.last().is_none_or(|last| last.event_id != event_id) {
            counts.push(StatusCount {
                event_id,
                total: 0,
                days: Vec::new(),
            });
        }
        let Some(last) = counts.last_mut() else {
            continue;
        };
        last.total += count;
        if day >= from {
            last.days.push((day, count));
        }
    }
    Ok(counts)
}
