//! Fills the database of a stopped server with old sessions and large events, faster than turns do.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, params};
use turnwire_event::{SessionId, Ulid};
use turnwire_testkit::server::TestServer;

/// A connection to the database of a server, which may run if `work` only reads.
pub(super) fn database(home: &Path) -> Connection {
    let database = Connection::open(home.join("turnwire.sqlite3")).expect("a database");
    let busy = database.busy_timeout(Duration::from_secs(30));
    busy.expect("a time limit");
    database
}

/// Ends a server by SIGTERM.
pub(super) async fn stop(server: &mut TestServer) {
    server.sigterm();
    assert!(server.wait(Duration::from_secs(30)).await.success());
}

/// The single number that a query returns.
pub(super) fn number(database: &Connection, sql: &str) -> i64 {
    let number = database.query_row(sql, [], |row| row.get(0));
    number.expect("a number")
}

/// Adds `count` sessions with two events each, `age` old, as copies of the first session's row.
pub(super) fn add_sessions(home: &Path, count: u128, age: Duration) {
    let mut database = database(home);
    let newest = number(&database, "SELECT max(time) FROM event");
    let time = newest - age.as_millis() as i64;
    let tx = database.transaction().expect("a transaction");
    {
        let mut session = tx
            .prepare(
                "INSERT INTO session (id, tenant, principal, metadata, episode_id, active_model, \
                 routing_policy_version, cost_usd, turn_count, created_at, updated_at, epoch, term, \
                 low_seq, low_hash) SELECT ?1, tenant, principal, metadata, episode_id, active_model, \
                 routing_policy_version, cost_usd, turn_count, created_at, updated_at, epoch, term, 0, \
                 zeroblob(32) FROM session ORDER BY sid LIMIT 1",
            )
            .expect("a statement");
        let mut event = tx
            .prepare(
                "INSERT INTO event (sid, seq, type, actor, time, hidden, hash, bytes) \
                 VALUES (?1, ?2, 'session.created', 'user', ?3, 0, zeroblob(32), zeroblob(300))",
            )
            .expect("a statement");
        let mut age = tx
            .prepare("INSERT INTO session_age (oldest, sid) VALUES (?1, ?2)")
            .expect("a statement");
        for number in 0..count {
            let id = SessionId(Ulid(number + 1)).to_string();
            session.execute([id]).expect("a session");
            let sid = tx.last_insert_rowid();
            for seq in 1..=2 {
                event.execute(params![sid, seq, time]).expect("an event");
            }
            age.execute([time, sid]).expect("an age");
        }
    }
    tx.commit().expect("a commit");
}

/// Adds `count` events of `bytes` each to a session, as they would not come by turns alone.
pub(super) fn add_events(home: &Path, session: SessionId, count: i64, bytes: i64) {
    let mut database = database(home);
    let tx = database.transaction().expect("a transaction");
    let sql = "INSERT INTO event (sid, seq, type, actor, time, hidden, hash, bytes) \
               SELECT s.sid, 1000000 + ?2, 'feedback.recorded', 'user', 0, 0, zeroblob(32), randomblob(?3) \
               FROM session s WHERE s.id = ?1";
    for seq in 0..count {
        tx.execute(sql, params![session.to_string(), seq, bytes])
            .expect("an event");
    }
    tx.commit().expect("a commit");
}
