//! Deleted rows leave nothing in the file, whatever SQLite did with them before, and the file stays
//! sound.

use std::path::Path;

use rusqlite::Connection;

use super::*;
use crate::sqlite::{CommitDurability, DATABASE_FILE, SqliteOptions};

const MARKER: &str = "MARKED-CONTENT";

fn open(dir: &Path) -> SqliteStore {
    let options = SqliteOptions {
        dir: dir.to_owned(),
        durability: CommitDurability::Full,
    };
    SqliteStore::open(&options).expect("a store")
}

/// The places of the marker in every file of the folder.
fn found(dir: &Path) -> usize {
    let files = std::fs::read_dir(dir).expect("a folder").flatten();
    let count = |path: std::path::PathBuf| {
        let bytes = std::fs::read(path).expect("a file");
        let marker = MARKER.as_bytes();
        bytes
            .windows(marker.len())
            .filter(|part| *part == marker)
            .count()
    };
    files.map(|entry| count(entry.path())).sum()
}

/// A few bits that look random.
fn noise(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// Writes rows of many sizes for twenty sessions, whose pages SQLite splits and joins; those of session
/// 7 have the marker. Then removes those of session 7 and of some others.
fn fill_and_remove(store: &SqliteStore, mut seed: u64) {
    let half = store.write_half.lock();
    let c = &half.connection;
    for piece in 0..8 {
        c.execute_batch("BEGIN IMMEDIATE").expect("begun");
        for row in 0..250 {
            let sid = noise(&mut seed) % 20;
            let sizes = [1, 3, 8, 20, 60, 150, 400];
            let size = sizes[(noise(&mut seed) % 7) as usize];
            let text = if sid == 7 { MARKER } else { "something-else" };
            let id = format!("{:026}", noise(&mut seed) % 1_000_000_000 * 8 + piece);
            c.execute(
                "INSERT OR IGNORE INTO message (id, sid, turn, role, status, content, metadata, created_at, \
                 completed_at, started, completed, cuts, inputs) \
                 VALUES (?1, ?2, 't', 'user', 'complete', ?3, '{}', 0, 0, '', ?4, x'', '[]')",
                params![id, sid as i64, text.repeat(size), format!("{row:08}")],
            )
            .expect("a row");
        }
        c.execute("DELETE FROM message WHERE sid = ?1", [piece as i64 % 5])
            .expect("removed");
        c.execute_batch("COMMIT").expect("committed");
    }
    drop(half);
    store
        .write(|half| {
            let tx = begin(&mut half.connection)?;
            execute(&tx, "DELETE FROM message WHERE sid = 7", [])?;
            half.erase.add_removal(&tx)?;
            Ok(tx.commit()?)
        })
        .expect("removed");
}

/// Runs the erasure to its end; returns the number of pieces.
fn erase(store: &SqliteStore, budget: &PieceBudget) -> usize {
    let mut pieces = 0;
    loop {
        match store.erase_piece(budget).expect("a piece") {
            Progress::Done => return pieces,
            Progress::More => pieces += 1,
            Progress::Later => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
}

#[test]
fn removed_rows_leave_nothing_in_any_file() {
    for seed in 1..=6 {
        let dir = tempfile::tempdir().expect("a folder");
        let store = open(dir.path());
        fill_and_remove(&store, seed);
        assert!(found(dir.path()) > 0, "the WAL has it");
        erase(&store, &PieceBudget::default());
        assert_eq!(found(dir.path()), 0, "seed {seed}");
        drop(store);
        let database = Connection::open(dir.path().join(DATABASE_FILE)).expect("a database");
        let check: String = database
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .expect("checked");
        assert_eq!(check, "ok");
        let left: i64 = database
            .query_row("SELECT count(*) FROM message", [], |row| row.get(0))
            .expect("a count");
        assert!(left > 300, "{left}");
    }
}

#[test]
fn secure_delete_alone_leaves_copies_that_erase_finds() {
    // Without this, the test above would show nothing.
    let mut left = 0;
    for seed in 1..=6 {
        let dir = tempfile::tempdir().expect("a folder");
        let store = open(dir.path());
        fill_and_remove(&store, seed);
        let half = store.write_half.lock();
        half.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .expect("a checkpoint");
        left += found(dir.path());
    }
    assert!(left > 0);
}

#[test]
fn erasure_goes_on_after_a_start_and_is_done_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = open(dir.path());
    fill_and_remove(&store, 1);
    let piece = PieceBudget {
        rows: 1,
        ..PieceBudget::default()
    };
    assert_eq!(store.erase_piece(&piece).ok(), Some(Progress::More));
    drop(store);
    let store = open(dir.path());
    assert!(erase(&store, &piece) > 1, "in pieces");
    assert_eq!(found(dir.path()), 0);
    assert_eq!(erase(&store, &piece), 0, "nothing is due");
    // What is removed during a pass is erased by the next one.
    fill_and_remove(&store, 2);
    assert_eq!(store.erase_piece(&piece).ok(), Some(Progress::More));
    fill_and_remove(&store, 3);
    erase(&store, &piece);
    assert!(erase(&store, &piece) > 0);
    assert_eq!(found(dir.path()), 0);
}

#[test]
fn unused_parts_are_the_gap_and_the_free_blocks() {
    let mut page = vec![0xee_u8; 64];
    // A leaf with one row of 8 bytes at 56 and a free block of 6 bytes at 40.
    page[..8].copy_from_slice(&[13, 0, 40, 0, 1, 0, 40, 0]);
    page[40..44].copy_from_slice(&[0, 0, 0, 6]);
    assert_eq!(unused_parts(&page), Some(vec![(10, 40), (44, 46)]));
    let clean = cleaned(&page).expect("a page");
    assert_eq!(
        (clean[39], clean[45], clean[46], clean[56]),
        (0, 0, 0xee, 0xee)
    );
    assert_eq!(cleaned(&clean), None);
    // Not a page of a tree, and lists that lead outside.
    for (at, byte) in [
        (0, 0),
        (2, 39),
        (43, 3),
        (43, 60),
        (41, 1),
        (4, 60),
        (6, 65),
    ] {
        let mut odd = page.clone();
        odd[at] = byte;
        assert_eq!(unused_parts(&odd), None, "byte {at}");
    }
}

#[test]
fn map_knows_its_own_pages() {
    let map = PageMap {
        pages: 1_000_000,
        page_bytes: 4_096,
    };
    assert_eq!(map.entry(2), None);
    assert_eq!(map.entry(3), Some((2, 0)));
    assert_eq!(map.entry(821), Some((2, 818 * 5)));
    assert_eq!(map.entry(822), None);
    assert_eq!(map.entry(823), Some((822, 0)));
    assert_eq!(map.locked_page(), 262_145);
}
