//! The reference: SQLite with group commit and nothing else.
//!
//! One writer thread takes what waits, up to 1,024 rows, writes them in one transaction with
//! `synchronous=FULL`, and acknowledges. The rows have the columns and the length of Turnwire's;
//! what is not done is making them: no envelope, no hash, no latch, no release.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::{Appender, EVENT_BYTES};

/// Rows of one transaction at most.
const BATCH_MAX: usize = 1024;

/// Stands where Turnwire's rows have a link of the chain.
const HASH: [u8; 32] = [7; 32];

struct AppendRow {
    session: usize,
    seq: u64,
    payload: Vec<u8>,
    done: oneshot::Sender<()>,
}

/// The writer's queue. Dropping it ends the writer thread after what it has taken.
#[derive(Debug)]
pub struct BareAppender {
    rows: mpsc::Sender<AppendRow>,
    next: Vec<AtomicU64>,
}

impl BareAppender {
    /// Opens a new database in `dir` and starts the writer.
    pub fn open(dir: &Path, sessions: usize) -> io::Result<Self> {
        let connection = Connection::open(dir.join("bare.sqlite")).map_err(io::Error::other)?;
        prepare(&connection).map_err(io::Error::other)?;
        let (rows, queue) = mpsc::channel(4096);
        std::thread::Builder::new()
            .name("bare-writer".into())
            .spawn(move || write(connection, queue))?;
        Ok(Self {
            rows,
            next: (0..sessions).map(|_| AtomicU64::new(1)).collect(),
        })
    }
}

impl Appender for BareAppender {
    async fn append(&self, session: usize) -> io::Result<()> {
        let (done, acknowledged) = oneshot::channel();
        let row = AppendRow {
            session,
            seq: self.next[session].fetch_add(1, Ordering::Relaxed),
            payload: vec![b'x'; EVENT_BYTES],
            done,
        };
        self.rows
            .send(row)
            .await
            .map_err(|_| io::Error::other("the writer is gone"))?;
        acknowledged.await.map_err(io::Error::other)
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA cache_size = -65536;
         CREATE TABLE event (
           gid INTEGER PRIMARY KEY,
           sid INTEGER NOT NULL,
           seq INTEGER NOT NULL,
           type TEXT NOT NULL,
           turn TEXT,
           actor TEXT NOT NULL,
           time INTEGER NOT NULL,
           hidden INTEGER NOT NULL,
           hash BLOB NOT NULL,
           bytes BLOB NOT NULL,
           UNIQUE (sid, seq)
         );",
    )
}

/// Ends with the queue, or with the first error: the acknowledgements then fail.
fn write(mut connection: Connection, mut queue: mpsc::Receiver<AppendRow>) -> rusqlite::Result<()> {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while queue.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO event (sid, seq, type, turn, actor, time, hidden, hash, bytes)
                 VALUES (?1, ?2, 'feedback.recorded', NULL, 'user', 0, 0, ?3, ?4)",
            )?;
            for row in &batch {
                let (sid, seq) = (row.session as i64, row.seq as i64);
                insert.execute(params![sid, seq, HASH, row.payload])?;
            }
        }
        transaction.commit()?;
        for row in batch.drain(..) {
            // A session that stopped waiting needs no answer.
            let _ = row.done.send(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn acknowledged_rows_are_in_the_file() {
        let dir = std::env::temp_dir().join(format!("bare-append-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        let bare = BareAppender::open(&dir, 2).expect("a database");
        for session in [0, 1, 0] {
            bare.append(session).await.expect("durable");
        }
        let reader = Connection::open(dir.join("bare.sqlite")).expect("the same file");
        let count: i64 = reader
            .query_row("SELECT count(*) FROM event", [], |row| row.get(0))
            .expect("the table");
        std::fs::remove_dir_all(&dir).expect("own folder");
        assert_eq!(count, 3);
    }
}
