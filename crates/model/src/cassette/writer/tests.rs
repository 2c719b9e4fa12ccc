//! The writer appends complete calls, keeps existing ones, and stops at the first write error.
//! Memory, file permissions and locking are bounded and checked too.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;

use super::super::{CallEnding, RecordedChunk, ResponseHead, parse};
use super::*;

fn call(agent: &str) -> Box<RecordedCall> {
    Box::new(RecordedCall {
        provider: "local".into(),
        dialect: "openai_chat".into(),
        model: "m".into(),
        agent: agent.into(),
        call: 1,
        salt: CassetteSalt::default(),
        words_sha256: "aa".into(),
        body_sha256: "bb".into(),
        answer: Some(ResponseHead {
            after: Duration::ZERO,
            events: true,
            status: 200,
            retry_after: None,
        }),
        chunks: vec![RecordedChunk {
            after: Duration::ZERO,
            bytes: Bytes::from_static(b"x"),
        }],
        ended_after: Duration::ZERO,
        ending: CallEnding::End,
    })
}

fn enqueue(writer: &CassetteWriter, agent: &str) {
    let reservation = writer.reserve().expect("it records");
    writer.enqueue(call(agent), Bytes::new(), reservation);
}

fn agents(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a file");
    let calls = parse("c", &text).expect("a cassette");
    calls.into_iter().map(|call| call.agent).collect()
}

#[test]
fn reopened_file_is_appended_and_loses_its_incomplete_call() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.jsonl");
    let writer = CassetteWriter::open(&path).expect("a new file");
    enqueue(&writer, "one");
    writer.flush();
    assert_eq!(agents(&path), ["one"]);
    drop(writer);
    let mut file = OpenOptions::new().append(true).open(&path).expect("a file");
    let incomplete = line::lines(&call("half"));
    file.write_all(&incomplete[..incomplete.len() - 20])
        .expect("half a call");
    let writer = CassetteWriter::open(&path).expect("the same file");
    enqueue(&writer, "two");
    drop(writer);
    assert_eq!(agents(&path), ["one", "two"]);
}

fn header(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines().next().expect("a line").to_owned()
}

#[test]
fn every_file_has_its_own_salt_and_keeps_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let paths = ["a.jsonl", "b.jsonl"].map(|name| dir.path().join(name));
    let mut digests = Vec::new();
    for path in &paths {
        for agent in ["one", "two"] {
            enqueue(&CassetteWriter::open(path).expect("a deck"), agent);
        }
        let text = std::fs::read_to_string(path).expect("a file");
        assert_eq!(text.matches("\"salt\"").count(), 1, "{text}");
        let calls = parse("c", &text).expect("a cassette");
        assert_eq!(calls.len(), 2);
        for call in &calls {
            assert_eq!(call.words_sha256, call.salt.digest("aa"));
            assert_eq!(call.body_sha256, call.salt.digest(&sha256_hex(b"")));
            assert_eq!(call.salt, calls[0].salt);
        }
        digests.push((calls[0].words_sha256.clone(), calls[0].body_sha256.clone()));
    }
    assert_ne!(header(&paths[0]), header(&paths[1]));
    assert_ne!(digests[0].0, digests[1].0);
    assert_ne!(digests[0].1, digests[1].1);
}

#[test]
fn call_appended_to_an_unsalted_file_is_salted() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("c.jsonl");
    let mut old_file = line::header(&CassetteSalt::default());
    assert_eq!(old_file, b"{\"type\":\"cassette\",\"version\":1}\n");
    old_file.extend(line::lines(&call("old")));
    std::fs::write(&path, &old_file).expect("written");
    enqueue(&CassetteWriter::open(&path).expect("a deck"), "new");
    let text = std::fs::read_to_string(&path).expect("a file");
    let calls = parse("c", &text).expect("a cassette");
    assert_eq!((&*calls[0].agent, &*calls[0].words_sha256), ("old", "aa"));
    assert_eq!(calls[1].agent, "new");
    assert_eq!(calls[1].words_sha256, calls[1].salt.digest("aa"));
    assert_ne!(calls[1].words_sha256, "aa");
}

#[test]
fn file_that_is_not_a_cassette_is_rejected_and_unchanged() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("notes.txt");
    std::fs::write(&path, "dear diary\n").expect("written");
    let error = CassetteWriter::open(&path)
        .expect_err("no cassette")
        .to_string();
    assert!(
        error.contains("notes.txt: the file exists and is not a cassette"),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(&path).expect("there"),
        "dear diary\n"
    );
    let missing_folder = CassetteWriter::open(&dir.path().join("none/c.jsonl"));
    let error = missing_folder.expect_err("no such folder").to_string();
    assert!(error.contains("cannot write the recording"), "{error}");
}

/// Accepts a number of writes, then fails.
struct FailingOutput(Arc<Mutex<usize>>);

impl Write for FailingOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut writes_left = self.0.lock().expect("not poisoned");
        *writes_left = writes_left
            .checked_sub(1)
            .ok_or(io::Error::from(io::ErrorKind::StorageFull))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn failed_write_stops_recording_without_blocking() {
    let writes_left = Arc::new(Mutex::new(1));
    let writer = CassetteWriter::start(
        Box::new(FailingOutput(Arc::clone(&writes_left))),
        CassetteSalt::default(),
    )
    .expect("a thread");
    enqueue(&writer, "one");
    writer.flush();
    assert!(writer.reserve().is_some());
    enqueue(&writer, "two");
    writer.flush();
    assert!(writer.reserve().is_none());
    let reservation = MemoryReservation {
        state: Arc::clone(&writer.state),
        bytes: 0,
    };
    writer.enqueue(call("three"), Bytes::new(), reservation);
    writer.flush();
    assert_eq!(*writes_left.lock().expect("not poisoned"), 0);
}

#[test]
fn memory_reservations_are_bounded_and_released_on_drop() {
    let writer =
        CassetteWriter::start(Box::new(io::sink()), CassetteSalt::default()).expect("a thread");
    let mut first = writer.reserve().expect("it records");
    assert!(first.grow(RESERVED_BYTES_MAX - 2 * CHUNK_BYTES));
    let mut second = writer.reserve().expect("it records");
    assert!(!second.grow(RESERVED_BYTES_MAX / 2));
    assert!(second.grow(0));
    assert!(!second.grow(0));
    drop(first);
    assert!(second.grow(RESERVED_BYTES_MAX / 2));
    drop(second);
    assert_eq!(writer.state.reserved_bytes.load(Ordering::Relaxed), 0);
}

#[cfg(unix)]
#[test]
fn existing_file_is_made_private_and_locked() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("tape.jsonl");
    std::fs::write(&path, "").expect("a file");
    let open_to_all = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&path, open_to_all).expect("its mode");
    let writer = CassetteWriter::open(&path).expect("a deck");
    let mode = std::fs::metadata(&path)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = CassetteWriter::open(&path).expect_err("it is taken");
    assert!(
        matches!(second, CassetteWriterError::Locked { .. }),
        "{second}"
    );
    drop(writer);
    CassetteWriter::open(&path).expect("it is free again");
}
