//! Files that are cut, reordered, edited or of another format are refused at the line that shows it.

use serde_json::json;
use turnwire_event::Seq;
use turnwire_log::chain::ChainHash;

use super::*;
use crate::session_file::writer::SessionFileWriter;

/// A small file of every kind that the reader needs, and its lines.
fn file() -> Vec<String> {
    let mut file = SessionFileWriter::new(Vec::new());
    let head = json!({
        "format": FORMAT, "version": VERSION, "turnwire": "0.0.0", "source": "server",
        "exported_at": "2026-01-01T00:00:00.000Z", "rows_seq": 0,
        "session_id": "sess_00000000000000000000000001",
    });
    file.write(RecordKind::Export, &head).expect("written");
    file.write(RecordKind::Session, &json!({"session": {}}))
        .expect("written");
    file.write(RecordKind::Log, &json!({"after": 0, "hash": "00"}))
        .expect("written");
    file.begin_log(Seq(0), ChainHash([0; 32]));
    for event in ["{\"a\":1}", "{\"b\" : 2.0}"] {
        file.write_event(event.as_bytes(), ChainHash([1; 32]))
            .expect("written");
    }
    let (bytes, end) = file.finish().expect("written");
    assert_eq!((end.records, end.events, end.last_seq), (5, 2, 2));
    let text = String::from_utf8(bytes).expect("text");
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// Reads a whole file: the lines that were read, or the fault.
fn read(lines: &[String]) -> Result<u64, FileFault> {
    let bytes = lines.concat().into_bytes();
    let outcome = || -> Result<u64, ReadFault> {
        let (mut reader, _) = SessionFileReader::open(bytes.as_slice())?;
        let mut line = 1;
        while let Some(record) = reader.next()? {
            line = record.line;
        }
        Ok(line)
    };
    outcome().map_err(|fault| match fault {
        ReadFault::File(fault) => fault,
        ReadFault::Io(error) => panic!("{error}"),
    })
}

fn refused(lines: &[String], line: u64, part: &str) {
    let fault = read(lines).expect_err(part);
    assert_eq!(fault.line, line, "{fault:?}");
    assert!(fault.description.contains(part), "{fault:?}");
}

#[test]
fn whole_file_is_read_to_its_end() {
    assert_eq!(read(&file()), Ok(6));
}

#[test]
fn event_keeps_its_stored_bytes() {
    let lines = file();
    assert!(
        lines[4].ends_with("\"event\":{\"b\" : 2.0}}\n"),
        "{lines:?}"
    );
}

#[test]
fn event_that_is_no_line_of_json_is_not_written() {
    let mut file = SessionFileWriter::new(Vec::new());
    for bytes in [
        b"{\"a\":\n1}".as_slice(),
        b"no json",
        b" {}",
        b"{}{}",
        b"{\"a\":\"\xff\"}",
    ] {
        let written = file.write_event(bytes, ChainHash([0; 32]));
        assert!(written.is_err(), "{bytes:?}");
    }
}

#[test]
fn cut_file_is_refused() {
    let lines = file();
    for kept in 1..lines.len() {
        refused(&lines[..kept], kept as u64 + 1, "without its end record");
        let mut cut = lines[..=kept].to_vec();
        let last = cut.last_mut().expect("a line");
        last.truncate(last.len() - 1);
        refused(&cut, kept as u64 + 1, "is cut");
    }
    assert!(read(&[]).is_err());
}

#[test]
fn reordered_or_repeated_records_are_refused() {
    let lines = file();
    let mut swapped = lines.clone();
    swapped.swap(3, 4); // two events: only the digest shows it here, the chain in the whole check
    refused(&swapped, 6, "the file was changed");
    let mut swapped = lines.clone();
    swapped.swap(2, 3);
    refused(&swapped, 3, "the record \"log\" before it is missing");
    let mut twice = lines.clone();
    twice.insert(2, lines[1].clone());
    refused(&twice, 3, "cannot follow");
    let mut missing = lines.clone();
    missing.remove(1);
    refused(&missing, 2, "the record \"session\" before it is missing");
    let mut more = lines.clone();
    more.push(lines[4].clone());
    refused(&more, 7, "comes after the end record");
}

#[test]
fn every_changed_byte_is_refused() {
    let lines = file();
    let bytes = lines.concat().into_bytes();
    let end = bytes.len() - lines[5].len();
    for at in 0..end {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let lines = String::from_utf8(changed).map(|text| {
            let lines = text.split_inclusive('\n').map(str::to_owned);
            lines.collect::<Vec<_>>()
        });
        if let Ok(lines) = lines {
            assert!(read(&lines).is_err(), "byte {at}");
        }
    }
}

#[test]
fn counts_of_the_end_are_checked() {
    let mut lines = file();
    lines[5] = lines[5].replace("\"events\":2", "\"events\":3");
    refused(&lines, 6, "but there are 5 and 2");
}

#[test]
fn other_formats_and_versions_are_refused() {
    let mut lines = file();
    lines[0] = lines[0].replace("\"version\":1", "\"version\":2");
    refused(&lines, 1, "version 2 of the format");
    lines[0] = lines[0].replace(FORMAT, "other");
    refused(&lines, 1, "unknown format");
    refused(&["a,b\n".to_owned()], 1, "is not the begin of a file");
}
