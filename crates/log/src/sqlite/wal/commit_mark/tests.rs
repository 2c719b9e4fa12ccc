//! Stores that were killed, with the WAL damaged before the next start.

use turnwire_event::Seq;

use super::*;
use crate::log::Log as _;
use crate::maintenance::{Maintenance as _, PieceBudget, Progress};
use crate::sqlite::upkeep::checkpoint::run_checkpoint;
use crate::sqlite::{CommitDurability, SqliteOptions, SqliteStore, WriteHalf};
use crate::tests::fixture::BatchBuilder;

fn open(dir: &Path) -> SqliteStore {
    let options = SqliteOptions {
        dir: dir.to_owned(),
        durability: CommitDurability::Full,
    };
    SqliteStore::open(&options).expect("a store")
}

/// The files of a folder as a killed process leaves them: copied while the store is open.
fn killed(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(dir).expect("a folder").flatten() {
        fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("a copy");
    }
    copy
}

/// A folder whose process was killed after forty commits of two events each.
fn killed_after_commits() -> (tempfile::TempDir, BatchBuilder) {
    let dir = tempfile::tempdir().expect("a folder");
    let mut builder = BatchBuilder::new(1);
    let store = open(dir.path());
    for _ in 0..40 {
        store.append(&[builder.events(2)]).expect("an append");
    }
    (killed(dir.path()), builder)
}

/// The epoch and the last event of a session.
fn tail(store: &SqliteStore, builder: &BatchBuilder) -> (u32, u64) {
    let tail = store
        .tail(builder.session)
        .expect("a tail")
        .expect("a session");
    (tail.epoch.0, tail.seq.0)
}

fn flip(path: &Path, at: u64) {
    let file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("a file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 1], at).expect("written");
}

fn remove(dir: &Path, suffixes: &[&str]) {
    for suffix in suffixes {
        fs::remove_file(file(dir, suffix)).expect("removed");
    }
}

#[test]
fn killed_store_continues_in_its_epoch() {
    let (dir, mut builder) = killed_after_commits();
    let store = open(dir.path());
    assert_eq!(tail(&store, &builder), (1, 80));
    store.append(&[builder.events(1)]).expect("the next event");
    let again = killed(dir.path());
    drop(store);
    assert_eq!(tail(&open(again.path()), &builder), (1, 81));
    // Closed by dropping it: SQLite has removed the WAL.
    assert_eq!(tail(&open(dir.path()), &builder), (1, 81));
    assert!(!damaged_copy(dir.path()).exists());
}

#[test]
fn damaged_frame_begins_an_epoch_once() {
    // What tells: the mark, the index, and the frames behind.
    for removed in [&["-shm"][..], &["-mark"], &["-shm", "-mark"]] {
        let (dir, builder) = killed_after_commits();
        remove(dir.path(), removed);
        let wal = file(dir.path(), "-wal");
        flip(&wal, fs::metadata(&wal).expect("a WAL").len() / 4 * 3);
        let original = fs::read(&wal).expect("a WAL");
        let store = open(dir.path());
        let (epoch, last) = tail(&store, &builder);
        assert_eq!(epoch, 2, "without {removed:?}");
        assert!((1..80).contains(&last), "{last}");
        let copy = fs::read(damaged_copy(dir.path())).expect("a copy");
        assert!(copy == original, "the copy is the WAL as it was found");
        let losses = store.wal_losses(builder.session).expect("losses");
        assert!(
            losses.recorded_frames > 0 && losses.pending_frames == 0,
            "{losses:?}"
        );
        // Killed again, and closed: the loss is not found a second time.
        let again = killed(dir.path());
        drop(store);
        for dir in [again.path(), dir.path()] {
            assert_eq!(tail(&open(dir), &builder), (2, last));
        }
    }
}

#[test]
fn last_commit_is_known_by_the_mark_or_the_index() {
    for removed in [&["-shm"][..], &["-mark"]] {
        for cut in [false, true] {
            let (dir, builder) = killed_after_commits();
            remove(dir.path(), removed);
            let wal = file(dir.path(), "-wal");
            let bytes = fs::metadata(&wal).expect("a WAL").len();
            match cut {
                true => {
                    let wal = File::options().write(true).open(&wal).expect("a WAL");
                    wal.set_len(bytes - 100).expect("cut");
                }
                false => flip(&wal, bytes - 100),
            }
            assert_eq!(tail(&open(dir.path()), &builder), (2, 78), "{removed:?}");
        }
    }
}

#[test]
fn missing_wal_begins_an_epoch_unless_the_store_was_closed() {
    let (dir, _) = killed_after_commits();
    remove(dir.path(), &["-wal", "-shm"]);
    let found = find_loss(dir.path(), |_| false)
        .expect("readable")
        .expect("a loss");
    assert!(found.frames > 20, "{found:?}");
    let closed = tempfile::tempdir().expect("a folder");
    let mut builder = BatchBuilder::new(1);
    let store = open(closed.path());
    store.append(&[builder.events(2)]).expect("an append");
    store.close();
    let after_close = killed(closed.path());
    remove(after_close.path(), &["-wal", "-shm"]);
    assert_eq!(tail(&open(after_close.path()), &builder), (1, 2));
}

#[test]
fn torn_tail_of_an_unknown_commit_is_cut_in_the_same_epoch() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut builder = BatchBuilder::new(1);
    let store = open(dir.path());
    store.append(&[builder.events(2)]).expect("an append");
    let before = killed(dir.path());
    store.append(&[builder.events(2)]).expect("an append");
    let after = killed(dir.path());
    // A power failure: the frames of the second commit, but neither its mark nor its index.
    for suffix in ["-mark", "-shm"] {
        let old = file(before.path(), suffix);
        fs::copy(old, file(after.path(), suffix)).expect("a copy");
    }
    let wal = file(after.path(), "-wal");
    flip(&wal, fs::metadata(&wal).expect("a WAL").len() - 100);
    assert_eq!(tail(&open(after.path()), &builder), (1, 2));
}

#[test]
fn database_newer_than_the_rest_of_the_wal_is_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut builder = BatchBuilder::new(1);
    let store = open(dir.path());
    for _ in 0..10 {
        store.append(&[builder.events(2)]).expect("an append");
    }
    // A checkpoint copies the frames and leaves them in the WAL.
    let checkpoint = |half: &mut WriteHalf| {
        let result = crate::sqlite::upkeep::checkpoint::run_checkpoint(&half.connection, "PASSIVE");
        Ok(result?)
    };
    store.write(checkpoint).expect("a checkpoint");
    store.append(&[builder.events(2)]).expect("an append");
    let known = WalState::read_index(&store.mark.as_ref().expect("a mark").index);
    let copy = killed(dir.path());
    let wal = file(copy.path(), "-wal");
    // A later commit may have restarted the WAL; then all before it is in the database file.
    let known = known.expect("a state");
    flip(&wal, 32 + 24 + 50);
    let store = open(copy.path());
    let (epoch, last) = tail(&store, &builder);
    assert_eq!((epoch, last), (2, 20), "{known:?}");
    let events = store.read(
        builder.session,
        Seq(0),
        Seq(20),
        &crate::EventSelection::all(),
        crate::ReadLimits {
            events: 100,
            bytes: usize::MAX,
            scanned: 100,
        },
    );
    assert_eq!(events.expect("events").events.len(), 20);
}

#[test]
fn interrupted_start_after_a_loss_repeats_it() {
    let (dir, builder) = killed_after_commits();
    let wal = file(dir.path(), "-wal");
    flip(&wal, fs::metadata(&wal).expect("a WAL").len() / 4 * 3);
    let loss = find_loss(dir.path(), |_| false)
        .expect("readable")
        .expect("a loss");
    keep_damaged(dir.path(), loss).expect("kept");
    // The process ends after SQLite has taken the rest of the WAL into the file.
    let path = dir.path().join(DATABASE_FILE);
    drop(rusqlite::Connection::open(path).map(|c| c.execute_batch("PRAGMA journal_mode = DELETE")));
    let _ = fs::remove_file(&wal);
    assert_eq!(
        find_loss(dir.path(), |_| false).expect("readable"),
        Some(loss)
    );
    let store = open(dir.path());
    assert_eq!(tail(&store, &builder).0, 2);
    assert_eq!(find_loss(dir.path(), |_| false).expect("readable"), None);
}

#[test]
fn garbled_mark_is_ignored() {
    let state = WalState {
        salts: WalSalts(*b"saltsalt"),
        frames: 7,
        backfilled: 3,
    };
    let loss = WalLoss {
        frames: 9,
        discard: true,
    };
    let tail = CommitTail {
        event: 7,
        hash: *b"hashhash",
        changes: 2,
    };
    for mark in [Mark::Open(state, tail), Mark::Closed, Mark::Damaged(loss)] {
        let bytes = mark.encode();
        assert_eq!(Mark::decode(&bytes), Some(mark));
        for at in 0..MARK_BYTES {
            let mut garbled = bytes;
            garbled[at] ^= 1;
            assert_eq!(Mark::decode(&garbled), None, "byte {at}");
        }
        assert_eq!(Mark::decode(&bytes[1..]), None);
    }
}

/// Deletes the builder's session, and removes its rows.
fn delete(store: &SqliteStore, builder: &BatchBuilder) {
    store.delete(&[builder.session], &[]).expect("deleted");
    while store
        .remove_deleted(&PieceBudget::default())
        .expect("a piece")
        == Progress::More
    {}
}

/// What another program does with a database that a killed process left: it copies the WAL.
fn copy_wal(dir: &Path) {
    let connection = rusqlite::Connection::open(dir.join(DATABASE_FILE)).expect("opened");
    let sessions: i64 = connection
        .query_row("SELECT count(*) FROM session", [], |row| row.get(0))
        .expect("read");
    assert!(sessions > 0);
    drop(connection);
    assert!(is_empty(&file(dir, "-wal")), "the WAL was copied");
}

#[test]
fn copied_wal_is_no_loss() {
    let (dir, mut builder) = killed_after_commits();
    copy_wal(dir.path());
    // A start that does not finish changes nothing.
    record_copied(dir.path()).expect("recorded");
    let store = open(dir.path());
    assert_eq!(tail(&store, &builder), (1, 80));
    // The newest events are removed before the crash.
    let mut other = BatchBuilder::new(2);
    store.append(&[other.events(5)]).expect("an append");
    delete(&store, &other);
    let again = killed(dir.path());
    copy_wal(again.path());
    assert_eq!(tail(&open(again.path()), &builder), (1, 80));
    store.append(&[builder.events(1)]).expect("an append");
}

#[test]
fn row_numbers_given_again_do_not_hide_a_loss() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut kept, mut deleted) = (BatchBuilder::new(1), BatchBuilder::new(2));
    let store = open(dir.path());
    store.append(&[kept.events(5)]).expect("an append");
    store.append(&[deleted.events(10)]).expect("an append");
    let copied = run_checkpoint(&store.write_half.lock().connection, "TRUNCATE");
    assert_eq!(copied.expect("copied").0, 0);
    store.write(|_| Ok(())).expect("recorded");
    // The database file has events 1 to 15; the WAL has the removal of 6 to 15.
    delete(&store, &deleted);
    let removed = killed(dir.path());
    // And these get the numbers of removed ones.
    store.append(&[kept.events(3)]).expect("an append");
    let reused = killed(dir.path());
    for dir in [&removed, &reused] {
        remove(dir.path(), &["-wal", "-shm"]);
        assert_eq!(tail(&open(dir.path()), &kept), (2, 5));
    }
}

#[test]
fn lost_commit_without_events_is_a_loss() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut builders = [BatchBuilder::new(1), BatchBuilder::new(2)];
    let store = open(dir.path());
    for builder in &mut builders {
        store.append(&[builder.events(5)]).expect("an append");
    }
    let copied = run_checkpoint(&store.write_half.lock().connection, "TRUNCATE");
    assert_eq!(copied.expect("copied").0, 0);
    store.delete(&[builders[0].session], &[]).expect("deleted");
    let killed = killed(dir.path());
    remove(killed.path(), &["-wal", "-shm"]);
    // The session is there again, which a client may have seen deleted.
    assert_eq!(tail(&open(killed.path()), &builders[0]).0, 2);
}
