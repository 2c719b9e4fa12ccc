//! A deck appends whole calls, keeps what is there, and stops at the first failure to write.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;

use super::super::{Chunk, Ending, Head, read};
use super::*;

fn call(agent: &str) -> Box<Call> {
    Box::new(Call {
        provider: "local".into(),
        dialect: "openai_chat".into(),
        model: "m".into(),
        agent: agent.into(),
        call: 1,
        salt: Salt::default(),
        words_sha256: "aa".into(),
        body_sha256: "bb".into(),
        answer: Some(Head {
            after: Duration::ZERO,
            events: true,
            status: 200,
            retry_after: None,
        }),
        chunks: vec![Chunk {
            after: Duration::ZERO,
            bytes: Bytes::from_static(b"x"),
        }],
        ended_after: Duration::ZERO,
        ending: Ending::End,
    })
}

fn put(deck: &Deck, agent: &str) {
    let hold = deck.hold().expect("it records");
    deck.put(call(agent), Bytes::new(), hold);
}

fn agents(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a file");
    let calls = read("c", &text).expect("a cassette");
    calls.into_iter().map(|call| call.agent).collect()
}

#[test]
fn calls_are_appended_to_what_is_there_and_half_a_call_is_not_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.jsonl");
    let deck = Deck::open(&path).expect("a new file");
    put(&deck, "one");
    deck.flush();
    assert_eq!(agents(&path), ["one"]);
    drop(deck);
    let mut torn = OpenOptions::new().append(true).open(&path).expect("a file");
    let half = line::lines(&call("half"));
    torn.write_all(&half[..half.len() - 20])
        .expect("half a call");
    let deck = Deck::open(&path).expect("the same file");
    put(&deck, "two");
    drop(deck);
    assert_eq!(agents(&path), ["one", "two"]);
}

fn header(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines().next().expect("a line").to_owned()
}

#[test]
fn every_file_has_a_salt_of_its_own_and_keeps_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let paths = ["a.jsonl", "b.jsonl"].map(|name| dir.path().join(name));
    let mut digests = Vec::new();
    for path in &paths {
        for agent in ["one", "two"] {
            put(&Deck::open(path).expect("a deck"), agent);
        }
        let text = std::fs::read_to_string(path).expect("a file");
        assert_eq!(text.matches("\"salt\"").count(), 1, "{text}");
        let calls = read("c", &text).expect("a cassette");
        assert_eq!(calls.len(), 2);
        for call in &calls {
            assert_eq!(call.words_sha256, call.salt.over("aa"));
            assert_eq!(call.body_sha256, call.salt.over(&sha256_hex(b"")));
            assert_eq!(call.salt, calls[0].salt);
        }
        digests.push((calls[0].words_sha256.clone(), calls[0].body_sha256.clone()));
    }
    assert_ne!(header(&paths[0]), header(&paths[1]));
    assert_ne!(digests[0].0, digests[1].0);
    assert_ne!(digests[0].1, digests[1].1);
}

#[test]
fn what_is_added_to_a_file_without_a_salt_has_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.jsonl");
    let mut old = line::header(&Salt::default());
    assert_eq!(old, b"{\"type\":\"cassette\",\"version\":1}\n");
    old.extend(line::lines(&call("old")));
    std::fs::write(&path, &old).expect("written");
    put(&Deck::open(&path).expect("a deck"), "new");
    let text = std::fs::read_to_string(&path).expect("a file");
    let calls = read("c", &text).expect("a cassette");
    assert_eq!((&*calls[0].agent, &*calls[0].words_sha256), ("old", "aa"));
    assert_eq!(calls[1].agent, "new");
    assert_eq!(calls[1].words_sha256, calls[1].salt.over("aa"));
    assert_ne!(calls[1].words_sha256, "aa");
}

#[test]
fn a_file_that_is_something_else_is_left_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("notes.txt");
    std::fs::write(&path, "dear diary\n").expect("written");
    let error = Deck::open(&path).expect_err("no cassette").to_string();
    assert!(
        error.contains("notes.txt: is there and is no cassette"),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(&path).expect("there"),
        "dear diary\n"
    );
    let nowhere = Deck::open(&dir.path().join("none/c.jsonl"));
    let error = nowhere.expect_err("no such folder").to_string();
    assert!(error.contains("cannot be recorded to"), "{error}");
}

/// Takes so many writes, then fails.
struct Full(Arc<Mutex<usize>>);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut left = self.0.lock().expect("not poisoned");
        *left = left
            .checked_sub(1)
            .ok_or(io::Error::from(io::ErrorKind::StorageFull))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_a_failed_write_nothing_is_recorded_and_nobody_is_held_up() {
    let left = Arc::new(Mutex::new(1));
    let deck = Deck::start(Box::new(Full(Arc::clone(&left))), Salt::default()).expect("a thread");
    put(&deck, "one");
    deck.flush();
    assert!(deck.hold().is_some());
    put(&deck, "two");
    deck.flush();
    assert!(deck.hold().is_none());
    let hold = Hold {
        shared: Arc::clone(&deck.shared),
        bytes: 0,
    };
    deck.put(call("three"), Bytes::new(), hold);
    deck.flush();
    assert_eq!(*left.lock().expect("not poisoned"), 0);
}

#[test]
fn calls_in_memory_have_bounded_room_which_comes_back() {
    let deck = Deck::start(Box::new(io::sink()), Salt::default()).expect("a thread");
    let mut first = deck.hold().expect("it records");
    assert!(first.grow(BYTES_MAX - 2 * CHUNK_BYTES));
    let mut second = deck.hold().expect("it records");
    assert!(!second.grow(BYTES_MAX / 2));
    assert!(second.grow(0));
    assert!(!second.grow(0));
    drop(first);
    assert!(second.grow(BYTES_MAX / 2));
    drop(second);
    assert_eq!(deck.shared.held.load(Ordering::Relaxed), 0);
}

#[cfg(unix)]
#[test]
fn a_file_that_was_there_is_its_owners_alone_and_one_servers_at_a_time() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tape.jsonl");
    std::fs::write(&path, "").expect("a file");
    let open_to_all = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&path, open_to_all).expect("its mode");
    let deck = Deck::open(&path).expect("a deck");
    let mode = std::fs::metadata(&path)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = Deck::open(&path).expect_err("it is taken");
    assert!(matches!(second, DeckError::Taken { .. }), "{second}");
    drop(deck);
    Deck::open(&path).expect("it is free again");
}
