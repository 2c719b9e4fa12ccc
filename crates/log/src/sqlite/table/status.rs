//! The status table: how often each status was emitted, by day. A status may be removed from the
//! registry only after it has not been emitted for long enough (S1-073).

use rusqlite::{Connection, Transaction, params};
use turnwire_event::{Timestamp, UtcDay};

use crate::records::StatusCount;
use crate::sqlite::column::{count, execute};

/// Adds one emission on the day of `time`.
pub(crate) fn add(tx: &Transaction<'_>, event_id: &str, time: Timestamp) -> rusqlite::Result<()> {
    execute(
        tx,
        "INSERT INTO status_emissions (day, event_id, count) VALUES (?1, ?2, 1) \
         ON CONFLICT (event_id, day) DO UPDATE SET count = count + 1",
        params![UtcDay::of(time).to_string(), event_id],
    )
    .map(drop)
}

/// Every status that was ever emitted, each with its days from that of `since` on.
pub(crate) fn counts(c: &Connection, since: Timestamp) -> rusqlite::Result<Vec<StatusCount>> {
    let from = UtcDay::of(since).to_string();
    let mut statement = c.prepare_cached(
        "SELECT event_id, day, count FROM status_emissions ORDER BY event_id, day",
    )?;
    let mut rows = statement.query([])?;
    let mut counts: Vec<StatusCount> = Vec::new();
    while let Some(row) = rows.next()? {
        let (event_id, day, count): (String, String, u64) =
            (row.get(0)?, row.get(1)?, count(row, 2)?);
        let days = (day >= from).then_some((day, count));
        match counts.last_mut().filter(|last| last.event_id == event_id) {
            Some(last) => {
                last.total += count;
                last.days.extend(days);
            }
            None => counts.push(StatusCount {
                event_id,
                total: count,
                days: days.into_iter().collect(),
            }),
        }
    }
    Ok(counts)
}
