//! Checkpoints: a thread that copies the WAL into the database file and makes the WAL start again.
//!
//! ```text
//!   commit ──▶ WalGauge: pages in the WAL ── a quarter of the bound more ──▶ thread: PASSIVE
//!                                                                             nobody waits
//!              above the bound: pause new reads, wait for running ones ──▶ RESTART on the writing
//!                                                                          connection: copies what
//!                                                                          PASSIVE left
//! ```
//!
//! A `PASSIVE` checkpoint never makes the WAL start again while reads overlap: some reader always
//! uses its frames. With reads paused no reader does, and a commit waits only for the few frames
//! that were written since. Far above the bound reads wait longer: the WAL must not grow for ever.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;
use turnwire_event::metric;

use crate::error::AppendError;
use crate::sqlite::connection::{BUSY_TIMEOUT, ReaderPool};
use crate::sqlite::wal::commit_mark::CommitMark;
use crate::sqlite::wal::gauge::WalGauge;
use crate::sqlite::write::WriteHalf;

/// How long reads are paused at most until running ones have ended.
const READ_PAUSE_MAX: Duration = Duration::from_millis(100);
/// The same for a WAL that is far above its bound.
const READ_PAUSE_MAX_FAR: Duration = Duration::from_secs(1);
/// How many times the bound is far above it.
const FAR_ABOVE: u64 = 4;
/// The wait of a `RESTART` for a lock that another process holds.
const RESTART_BUSY: Duration = Duration::from_millis(20);
/// Frames that a `RESTART` may copy while commits wait: 2 MB.
const RESTART_FRAMES_MAX: i64 = 512;

/// The handle of the checkpoint thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    gauge: Arc<WalGauge>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread with a connection of its own.
    pub(crate) fn start(
        connection: Connection,
        wal: PathBuf,
        gauge: Arc<WalGauge>,
        (write_half, readers): (Arc<Mutex<WriteHalf>>, Arc<ReaderPool>),
        mark: Arc<CommitMark>,
    ) -> std::io::Result<Self> {
        let worker = CheckpointThread {
            connection,
            wal,
            gauge: gauge.clone(),
            write_half,
            readers,
            mark,
        };
        let thread = std::thread::Builder::new()
            .name("turnwire-checkpoint".into())
            .spawn(move || worker.run())?;
        Ok(Self {
            gauge,
            thread: Some(thread),
        })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.gauge.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The body of the checkpoint thread.
struct CheckpointThread {
    connection: Connection,
    wal: PathBuf,
    gauge: Arc<WalGauge>,
    write_half: Arc<Mutex<WriteHalf>>,
    readers: Arc<ReaderPool>,
    mark: Arc<CommitMark>,
}

impl CheckpointThread {
    fn run(self) {
        let mut is_over = false;
        report_space(&self.connection, &self.gauge);
        while self.gauge.wait(is_over) {
            match self.checkpoint() {
                // Full disk or a reader in the way: the commits are durable, a later checkpoint
                // copies them.
                Ok(()) | Err(AppendError::Full | AppendError::Busy) => {}
                Err(error) => {
                    tracing::error!(%error, "a checkpoint failed");
                    self.gauge.fail(error.to_string());
                    return;
                }
            }
            is_over = self.gauge.bytes() >= self.gauge.bytes_max() || self.gauge.is_truncate_due();
            report_space(&self.connection, &self.gauge);
        }
    }

    fn checkpoint(&self) -> Result<(), AppendError> {
        let (_, frames, copied) = run_checkpoint(&self.connection, "PASSIVE")?;
        // Before the frames are copied: a later request is for a later checkpoint.
        let is_truncate_due = self.gauge.is_truncate_due();
        if self.gauge.bytes() < self.gauge.bytes_max() && !is_truncate_due {
            return Ok(());
        }
        let is_far_above = self.gauge.bytes() >= FAR_ABOVE * self.gauge.bytes_max();
        if frames - copied > RESTART_FRAMES_MAX && !is_far_above {
            let (_, frames, copied) = run_checkpoint(&self.connection, "PASSIVE")?;
            // A long read keeps the frames: other reads must not wait for the copy.
            if frames - copied > RESTART_FRAMES_MAX {
                return Ok(());
            }
        }
        let pause_max = match is_far_above {
            true => READ_PAUSE_MAX_FAR,
            false => READ_PAUSE_MAX,
        };
        let Some(_pause) = self.readers.pause(pause_max) else {
            return Ok(());
        };
        // What was written since, while commits go on.
        run_checkpoint(&self.connection, "PASSIVE")?;
        // After a burst the file is cut; else it is written over, which is faster than growing it.
        let size = std::fs::metadata(&self.wal).map_or(0, |file| file.len());
        let mode = match is_truncate_due || size > 2 * self.gauge.bytes_max() {
            true => "TRUNCATE",
            false => "RESTART",
        };
        // A commit that waits for the disk must not hold up the paused reads.
        let Some(mut write_half) = self.write_half.try_lock_for(READ_PAUSE_MAX) else {
            return Ok(());
        };
        let connection = &write_half.connection;
        if mode == "TRUNCATE" {
            // After a power failure an older mark would miss the frames of the emptied file.
            run_checkpoint(connection, "PASSIVE")?;
            self.mark.record_synced();
        }
        connection.busy_timeout(RESTART_BUSY)?;
        let restarted = run_checkpoint(connection, mode);
        connection.busy_timeout(BUSY_TIMEOUT)?;
        if let (0, ..) = restarted? {
            write_half.wal_restarted();
            self.mark.record();
            if is_truncate_due {
                self.gauge.set_truncated();
            }
        }
        Ok(())
    }
}

/// Sets the metrics of the sizes of the database and of its WAL.
pub(crate) fn report_space(c: &Connection, gauge: &WalGauge) {
    let value = |pragma: &str| -> rusqlite::Result<f64> {
        let sql = format!("PRAGMA {pragma}");
        Ok(c.query_row(&sql, [], |row| row.get::<_, i64>(0))? as f64)
    };
    let read = || -> rusqlite::Result<(f64, f64)> {
        let page = value("page_size")?;
        Ok((value("page_count")? * page, value("freelist_count")? * page))
    };
    if let Ok((bytes, free)) = read() {
        metrics::gauge!(metric::LOG_DATABASE_BYTES).set(bytes);
        metrics::gauge!(metric::LOG_FREE_BYTES).set(free);
    }
    metrics::gauge!(metric::LOG_WAL_BYTES).set(gauge.bytes() as f64);
}

/// Runs a checkpoint: whether it was blocked, the frames in the WAL, and those copied.
pub(crate) fn run_checkpoint(
    connection: &Connection,
    mode: &str,
) -> rusqlite::Result<(i64, i64, i64)> {
    let pragma = format!("PRAGMA wal_checkpoint({mode})");
    connection.query_row(&pragma, [], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })
}
