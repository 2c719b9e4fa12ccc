//! The stored time that decides what is due, in the table `meta`.

use rusqlite::{Connection, OptionalExtension as _, params};
use turnwire_event::Timestamp;

use crate::error::AppendError;
use crate::maintenance::{ClockMark, Uptime};
use crate::sqlite::column::{execute, query_value};
use crate::sqlite::write::{WriteHalf, begin};

const TRUSTED: &str = "trusted_ms";
const SWEPT: &str = "swept_ms";
const BOOT: &str = "trusted_boot";
const UPTIME: &str = "trusted_uptime_ms";

impl WriteHalf {
    /// Replaces the stored mark in one transaction.
    pub(crate) fn set_clock_mark(&mut self, mark: &ClockMark) -> Result<(), AppendError> {
        let tx = begin(&mut self.connection)?;
        let (boot, millis) = mark.uptime.map_or((0, -1), |up| (up.boot, up.millis));
        for (key, value) in [
            (TRUSTED, mark.trusted.as_millis()),
            (SWEPT, mark.swept.as_millis()),
            (BOOT, boot),
            (UPTIME, millis),
        ] {
            let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2";
            execute(&tx, sql, params![key, value])?;
        }
        tx.commit()?;
        self.after_commit()
    }
}

/// Reads the mark from the table `meta`; `None` in a database of an older release.
pub(crate) fn clock_mark(c: &Connection) -> rusqlite::Result<Option<ClockMark>> {
    let value = |key: &str| -> rusqlite::Result<Option<i64>> {
        query_value(c, "SELECT value FROM meta WHERE key = ?1", [key]).optional()
    };
    let Some(trusted) = value(TRUSTED)?.map(Timestamp::from_millis) else {
        return Ok(None);
    };
    let uptime = match (value(BOOT)?, value(UPTIME)?) {
        (Some(boot), Some(millis)) if millis >= 0 => Some(Uptime { boot, millis }),
        _ => None,
    };
    let swept = value(SWEPT)?.map_or(trusted, Timestamp::from_millis);
    Ok(Some(ClockMark {
        trusted,
        swept,
        uptime,
    }))
}

/// The time of the event that was appended last.
pub(crate) fn newest_event_time(c: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let sql = "SELECT time FROM event ORDER BY gid DESC LIMIT 1";
    let time: Option<i64> = query_value(c, sql, []).optional()?;
    Ok(time.map(Timestamp::from_millis))
}
