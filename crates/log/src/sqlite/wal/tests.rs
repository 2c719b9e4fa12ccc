//! WAL files that SQLite wrote, damaged at every frame.

use rusqlite::Connection;

use super::*;

/// Bytes of a frame with SQLite's default page.
const FRAME: usize = FRAME_HEADER_BYTES + 4096;

/// The bytes of a WAL with `commits` transactions, and the frame that each ends with.
fn written_wal(commits: usize) -> (Vec<u8>, Vec<u32>) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("db");
    let connection = Connection::open(&path).expect("a database");
    let sql = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x);";
    connection.execute_batch(sql).expect("WAL mode");
    let wal = dir.path().join("db-wal");
    let frames = || (wal.metadata().expect("a WAL").len() as usize - HEADER_BYTES) / FRAME;
    let mut ends = vec![frames() as u32];
    for _ in 1..commits {
        let sql = "INSERT INTO t VALUES (zeroblob(9000)), (randomblob(9000))";
        connection.execute_batch(sql).expect("a commit");
        ends.push(frames() as u32);
    }
    (std::fs::read(&wal).expect("a WAL"), ends)
}

fn scan(bytes: &[u8]) -> WalScan {
    WalScan::of(bytes).expect("readable")
}

/// The last of `ends` before `frame`.
fn commit_before(ends: &[u32], frame: u32) -> u32 {
    let before = ends.iter().copied().filter(|end| *end < frame);
    before.max().unwrap_or(0)
}

#[test]
fn intact_wal_is_recovered_to_its_last_commit() {
    let (bytes, ends) = written_wal(6);
    let scan = scan(&bytes);
    let last = *ends.last().expect("commits");
    assert_eq!((scan.recovered, scan.committed), (last, last));
    assert_eq!(scan.loss(None), None);
    let known = WalState {
        salts: scan.salts.expect("salts"),
        frames: last,
        backfilled: 0,
    };
    assert_eq!(scan.loss(Some(known)), None);
    let ahead = WalState {
        frames: last + 1,
        ..known
    };
    let lost = scan.loss(Some(ahead)).expect("a loss");
    assert_eq!((lost.frames, lost.discard), (1, false));
}

#[test]
fn damage_before_the_last_transaction_shows_in_the_wal() {
    let (bytes, ends) = written_wal(5);
    let last = *ends.last().expect("commits");
    for frame in 1..=commit_before(&ends, last) {
        // The page number, the commit size, a salt, the checksum, and the page.
        for byte in [1, 6, 9, 17, FRAME_HEADER_BYTES + 77] {
            let mut bytes = bytes.clone();
            bytes[HEADER_BYTES + (frame as usize - 1) * FRAME + byte] ^= 0x20;
            let found = scan(&bytes);
            assert_eq!(
                found.recovered,
                commit_before(&ends, frame),
                "{frame} {byte}"
            );
            let lost = found
                .loss(None)
                .unwrap_or_else(|| panic!("{frame} {byte}: {found:?}"));
            assert!(
                lost.frames > last - frame && lost.frames <= last,
                "{frame} {byte}: {lost:?}"
            );
        }
    }
}

#[test]
fn torn_last_transaction_is_a_loss_only_if_it_was_known() {
    let (bytes, ends) = written_wal(5);
    let last = *ends.last().expect("commits");
    let before = commit_before(&ends, last);
    let known = |frames| WalState {
        salts: scan(&bytes).salts.expect("salts"),
        frames,
        backfilled: 0,
    };
    for frame in before + 1..=last {
        let start = HEADER_BYTES + (frame as usize - 1) * FRAME;
        let mut damaged = bytes.clone();
        damaged[start + 100] ^= 1;
        // Cut within the frame, and damaged with all later frames in place.
        for torn in [&bytes[..start + 100], &damaged] {
            let found = scan(torn);
            assert_eq!(found.recovered, before, "{frame}");
            assert_eq!(found.loss(None), None, "{frame}");
            assert_eq!(found.loss(Some(known(before))), None, "{frame}");
            let lost = found.loss(Some(known(last))).expect("a loss");
            assert_eq!(lost.frames, last - before, "{frame}");
        }
    }
}

#[test]
fn leftover_of_a_torn_transaction_is_no_damage() {
    let (bytes, ends) = written_wal(5);
    let before = commit_before(&ends, *ends.last().expect("commits"));
    let end = HEADER_BYTES + before as usize * FRAME;
    // The first transaction's end again: frames of the same salts that do not continue the chain,
    // as a process leaves them that was killed while it wrote a longer transaction.
    let mut leftover = bytes[..end].to_vec();
    leftover.extend_from_slice(&bytes[end - 2 * FRAME..end]);
    assert_eq!(scan(&leftover).loss(None), None);
}

#[test]
fn missing_or_replaced_wal_loses_what_is_not_checkpointed() {
    let (bytes, _) = written_wal(2);
    let salts = scan(&bytes).salts.expect("salts");
    let shifted = |by: u32| {
        let mut other = salts;
        let first = word(&salts.0, 0).wrapping_add(by);
        other.0[..4].copy_from_slice(&first.to_be_bytes());
        other
    };
    let known = |salts, backfilled| WalState {
        salts,
        frames: 40,
        backfilled,
    };
    let mut header = bytes.clone();
    header[20] ^= 1;
    for missing in [&bytes[..0], &bytes[..20], &header] {
        let found = scan(missing);
        let lost = found.loss(Some(known(salts, 15))).expect("a loss");
        assert_eq!((lost.frames, lost.discard), (25, false));
        assert_eq!(found.loss(Some(known(salts, 40))), None, "checkpointed");
        assert_eq!(found.loss(None), None);
    }
    let found = scan(&bytes);
    // Restarted since: the frames of the earlier WAL are in the database file.
    assert_eq!(found.loss(Some(known(shifted(u32::MAX), 0))), None);
    // The WAL of an earlier time.
    let lost = found.loss(Some(known(shifted(1), 15))).expect("a loss");
    assert_eq!((lost.frames, lost.discard), (25, true));
    // The database file is newer than what is left of the WAL.
    let lost = found.loss(Some(known(salts, 30))).expect("a loss");
    assert!(lost.discard);
}

#[test]
fn index_of_the_wal_tells_the_last_commit() {
    let dir = tempfile::tempdir().expect("a folder");
    let connection = Connection::open(dir.path().join("db")).expect("a database");
    let sql = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x);";
    connection.execute_batch(sql).expect("WAL mode");
    let index = File::open(dir.path().join("db-shm")).expect("an index");
    let state = || WalState::read_index(&index).expect("a state");
    let found = || WalScan::read(&dir.path().join("db-wal")).expect("a WAL");
    for _ in 0..3 {
        connection
            .execute_batch("INSERT INTO t VALUES (1)")
            .expect("a commit");
        assert_eq!(Some(state().salts), found().salts);
        assert_eq!((state().frames, state().backfilled), (found().recovered, 0));
    }
    let checkpoint = |mode: &str| {
        let pragma = format!("PRAGMA wal_checkpoint({mode})");
        connection
            .query_row(&pragma, [], |_| Ok(()))
            .expect("a checkpoint");
    };
    checkpoint("PASSIVE");
    assert_eq!(state().backfilled, found().recovered);
    let before = state();
    checkpoint("TRUNCATE");
    assert!(state().salts.is_after(before.salts));
    assert_eq!(state().frames, 0);
    assert_eq!(WalState::latest(Some(before), Some(state())), Some(state()));
    assert_eq!(WalState::latest(Some(state()), Some(before)), Some(state()));
}
