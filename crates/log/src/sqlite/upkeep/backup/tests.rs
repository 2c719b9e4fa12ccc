//! A copy that is made while commits go on is one state of the database; a damaged one does not pass its
//! check; a restored one goes on above every epoch that was used.

use std::path::Path;

use rusqlite::Connection;
use turnwire_event::{Seq, Ulid};

use super::*;
use crate::sqlite::{CommitDurability, SqliteOptions};
use crate::tests::fixture::BatchBuilder;

fn open(dir: &Path) -> SqliteStore {
    let options = SqliteOptions {
        dir: dir.to_owned(),
        durability: CommitDurability::Full,
    };
    SqliteStore::open(&options).expect("a store")
}

fn epochs(dir: &Path) -> Vec<u32> {
    let database = Connection::open(dir.join(DATABASE_FILE)).expect("a database");
    let mut rows = database
        .prepare("SELECT epoch FROM session ORDER BY sid")
        .expect("a statement");
    let rows = rows.query_map([], |row| row.get(0)).expect("rows");
    rows.map(|row| row.expect("a number")).collect()
}

/// Appends a session of `count` events.
fn append_events(store: &SqliteStore, id: u128, count: usize) {
    let append = BatchBuilder::new(id).events(count);
    store.append(&[append]).expect("room on the disk");
}

/// A folder with sessions of some events each.
fn filled(dir: &Path, sessions: u128, events: u64) -> SqliteStore {
    let store = open(dir);
    for number in 1..=sessions {
        append_events(&store, number, events as usize);
    }
    store
}

const ALL: CheckDepth = CheckDepth::Full;
const SAMPLE: CheckDepth = CheckDepth::Sample { events: 10 };

#[test]
fn copy_is_one_state_while_commits_go_on() {
    let root = tempfile::tempdir().expect("a folder");
    let (home, copy) = (root.path().join("home"), root.path().join("copy"));
    let store = filled(&home, 3, 40);
    fs::create_dir(&copy).expect("a folder");
    let pieces = BackupPieces {
        pages: 2,
        rest: Duration::ZERO,
    };
    let mut steps = 0;
    let content = SqliteStore::back_up(&home, &copy.join(DATABASE_FILE), pieces, &mut |_, _| {
        steps += 1;
        append_events(&store, 100 + steps, 1);
    });
    let content = content.expect("a copy");
    assert!(steps > 3, "{steps} pieces");
    assert_eq!((content.sessions, content.events), (3, 120));
    let (found, checked) = SqliteStore::check(&copy, ALL).expect("sound");
    assert_eq!(found, content);
    assert_eq!((checked.sessions, checked.events), (3, 120));
    let (_, checked) = SqliteStore::check(&copy, SAMPLE).expect("sound");
    assert_eq!((checked.sessions, checked.events), (1, 40));
    let names: Vec<_> = fs::read_dir(&copy).expect("a folder").flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    // A second copy does not replace the first.
    let again = SqliteStore::back_up(&home, &copy.join(DATABASE_FILE), pieces, &mut |_, _| {});
    assert!(again.is_err());
}

#[test]
fn damaged_copy_does_not_pass_its_check() {
    let root = tempfile::tempdir().expect("a folder");
    drop(filled(root.path(), 2, 30));
    let database = Connection::open(root.path().join(DATABASE_FILE)).expect("a database");
    let change = "UPDATE event SET bytes = bytes || x'20' WHERE sid = 1 AND seq = 7";
    assert_eq!(database.execute(change, []).expect("changed"), 1);
    drop(database);
    assert!(
        SqliteStore::check(root.path(), SAMPLE).is_ok(),
        "not in the sample"
    );
    let found = SqliteStore::check(root.path(), ALL);
    let Err(CheckError::Session { cause, .. }) = found else {
        panic!("{found:?}");
    };
    assert!(
        matches!(cause, ReadError::Damaged { seq: 7, .. }),
        "{cause}"
    );
    let path = root.path().join(DATABASE_FILE);
    let mut bytes = fs::read(&path).expect("a file");
    let at = bytes.len() - 4_096 * 3;
    bytes[at..at + 64].fill(0xa5);
    fs::write(&path, bytes).expect("written");
    assert!(SqliteStore::check(root.path(), SAMPLE).is_err());
}

#[test]
fn restored_database_is_above_every_epoch_that_was_used() {
    let root = tempfile::tempdir().expect("a folder");
    let [home, copy] = ["home", "copy"].map(|name| root.path().join(name));
    let store = filled(&home, 2, 5);
    fs::create_dir(&copy).expect("a folder");
    let pieces = BackupPieces::default();
    let to = copy.join(DATABASE_FILE);
    SqliteStore::back_up(&home, &to, pieces, &mut |_, _| {}).expect("a copy");
    append_events(&store, 3, 5);
    let aside = |name: &str| root.path().join(name);
    let refused = SqliteStore::restore(&home, &to, &aside("0"));
    assert!(matches!(refused, Err(OpenError::InUse(_))), "{refused:?}");
    drop(store);
    for (round, expected) in [(1, 2), (2, 3)] {
        let aside = aside(&round.to_string());
        let restored = SqliteStore::restore(&home, &to, &aside).expect("restored");
        assert_eq!(restored.replaced.as_deref(), Some(aside.as_path()));
        assert_eq!(
            (restored.sessions, restored.epoch),
            (2, Some(Epoch(expected)))
        );
        assert_eq!(
            epochs(&home),
            [expected; 2],
            "the same copy again is above it"
        );
        let kept = epochs(&aside).len();
        assert_eq!(kept, if round == 1 { 3 } else { 2 });
        let store = open(&home);
        let tail = store.tail(SessionId(Ulid(1))).expect("a read");
        let tail = tail.expect("a session");
        assert_eq!((tail.epoch, tail.seq), (Epoch(expected), Seq(5)));
        assert_eq!(
            store.wal_losses(SessionId(Ulid(1))).expect("a read"),
            Default::default()
        );
        drop(store);
    }
    // Into a folder that has nothing.
    let restored = SqliteStore::restore(&aside("new"), &to, &aside("3")).expect("restored");
    assert_eq!(restored.replaced, None);
    assert_eq!(epochs(&aside("new")), [2, 2]);
}

#[test]
fn folder_of_an_unfinished_restore_is_not_opened() {
    let root = tempfile::tempdir().expect("a folder");
    drop(filled(root.path(), 1, 2));
    let draft = root.path().join(RESTORE_DRAFT);
    fs::write(&draft, "").expect("written");
    let options = SqliteOptions {
        dir: root.path().to_owned(),
        durability: CommitDurability::Full,
    };
    let refused = SqliteStore::open(&options);
    assert!(
        matches!(refused, Err(OpenError::UnfinishedRestore(_))),
        "{refused:?}"
    );
    fs::remove_file(&draft).expect("removed");
    drop(open(root.path()));
}
