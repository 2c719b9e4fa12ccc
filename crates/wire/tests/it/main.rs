//! The golden files: one log as input, one file of frames per wire as output, for every scenario.
//!
//! `UPDATE_GOLDEN=1 cargo test -p turnwire-wire --test it` rewrites the files; otherwise any
//! difference fails. Every scenario is also checked against the invariants of a list of events.

mod chat;
mod payload;
mod scenario;

use std::path::{Path, PathBuf};

use scenario::{catalog, invariants};
use serde::Deserialize;
use serde_json::value::RawValue;
use turnwire_event::{Event, EventFilter};
use turnwire_wire::pc3::WireVersion;
use turnwire_wire::session;

fn lines<'a>(items: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    items.fold(Vec::new(), |mut out, item| {
        out.extend_from_slice(item);
        out.push(b'\n');
        out
    })
}

fn session_frames(events: &[Event]) -> Vec<Vec<u8>> {
    let filter = EventFilter::full();
    let seen = events.iter().filter(|event| filter.matches(&event.head()));
    seen.map(|event| {
        let mut frame = Vec::new();
        session::write_event(&event.to_bytes(), &mut frame);
        frame
    })
    .collect()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn compare(path: &Path, actual: &[u8]) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
        std::fs::write(path, actual).expect("the golden file is written");
        return;
    }
    let stored = std::fs::read(path).unwrap_or_default();
    let stored: Vec<&[u8]> = stored.split(|&b| b == b'\n').collect();
    let actual: Vec<&[u8]> = actual.split(|&b| b == b'\n').collect();
    for (at, (was, is)) in stored.iter().zip(&actual).enumerate() {
        let (was, is) = (String::from_utf8_lossy(was), String::from_utf8_lossy(is));
        assert_eq!(was, is, "{}:{}", path.display(), at + 1);
    }
    assert_eq!(stored.len(), actual.len(), "lines of {}", path.display());
}

// S3-046, S3-053, S3-054, S3-056, S3-058, S3-075, S1-099, S1-038, C-11, C-39
#[test]
fn every_scenario_matches_its_golden_files() {
    let scenarios = catalog::all();
    assert!(scenarios.len() >= 10);
    for (name, events) in &scenarios {
        let bytes: Vec<Vec<u8>> = events.iter().map(Event::to_bytes).collect();
        let log = lines(bytes.iter().map(Vec::as_slice));
        compare(&folder(name).join("events.jsonl"), &log);
        let frames = session_frames(events);
        let wire = lines(frames.iter().map(Vec::as_slice));
        compare(&folder(name).join("session.jsonl"), &wire);
        for version in WireVersion::ALL {
            let file = format!("pc3-{version}.txt");
            compare(&folder(name).join(file), &chat::stream(events, version));
        }
    }
}

#[test]
fn every_golden_folder_has_a_scenario() {
    let scenario_names: Vec<&str> = catalog::all().iter().map(|(name, _)| *name).collect();
    for entry in std::fs::read_dir(folder("")).expect("the golden folder") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("a plain name");
        assert!(scenario_names.contains(&name), "{name} is left over");
    }
}

// S3-051, S3-060, S3-100, I-04
#[test]
fn every_scenario_keeps_the_invariants() {
    for (name, events) in catalog::all() {
        assert_eq!(
            invariants::violations(&events),
            Vec::<String>::new(),
            "{name}"
        );
    }
}

/// A frame as a client parses it.
#[derive(Deserialize)]
struct EventFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    event: &'a RawValue,
}

// S3-048
#[test]
fn frames_contain_the_bytes_of_the_log() {
    for (name, events) in catalog::all() {
        let frames = session_frames(&events);
        let seen = EventFilter::full();
        let seen = events.iter().filter(|event| seen.matches(&event.head()));
        assert_eq!(frames.len(), seen.clone().count(), "{name}");
        for (event, frame) in seen.zip(&frames) {
            let text = std::str::from_utf8(frame).expect("frames are text");
            assert!(!text.contains('\n'), "{name}: a frame is one line");
            let frame: EventFrame<'_> = serde_json::from_str(text).expect("a frame");
            assert_eq!(frame.kind, "event", "{name}");
            let raw = frame.event;
            assert_eq!(raw.get().as_bytes(), event.to_bytes(), "{name}");
            let read = Event::read(raw.get().as_bytes()).expect("an event");
            assert_eq!(&read, event, "{name}");
        }
    }
}

#[test]
fn each_violated_invariant_is_detected() {
    let by_name = |wanted: &str| {
        let found = catalog::all().into_iter().find(|(name, _)| *name == wanted);
        found.expect("a scenario").1
    };
    let tool = by_name("one_tool");
    for (what, expected) in invariants::mutations(&tool) {
        let broken = invariants::violations(&what);
        assert!(
            broken.iter().any(|line| line.contains(expected)),
            "{expected:?} is not among {broken:?}"
        );
    }
}
