//! The history checker on generated histories: it reports nothing for valid ones, and exactly
//! the broken promise for each edited one.

mod durable;
mod order;
mod turns;
mod text;
mod rows;
mod snapshots;
mod chat;
mod workers;

use std::collections::BTreeSet;

use turnwire_event::{Body, Event, EventType, Position, Seq, Sub};

use super::fixture::SessionFixture;
use super::fixture_clients::with_clients;
use super::record::{ConnectionEntry, History};
use crate::chat::Block;

const SEEDS: std::ops::Range<u64> = 0..8;

fn names(history: &History) -> BTreeSet<String> {
    history
        .violations()
        .iter()
        .map(super::Violation::name)
        .collect()
}

#[test]
fn valid_histories_have_no_violation() {
    for seed in 0..80 {
        let history = with_clients(&mut SessionFixture::new(seed));
        assert_eq!(history.violations(), [], "seed {seed}");
        assert!(history.connections.len() > 6);
        history.assert_clean();
    }
}

/// Edits a fixture before its clients are generated, and asserts the names of the violations.
fn fixture_violates(expected: &[&str], edit_fixture: impl Fn(&mut SessionFixture)) {
    for seed in SEEDS {
        let mut fixture = SessionFixture::new(seed);
        edit_fixture(&mut fixture);
        let expected: BTreeSet<String> = expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(names(&with_clients(&mut fixture)), expected, "seed {seed}");
    }
}

/// Edits a finished history, and asserts the names of the violations.
fn history_violates(expected: &[&str], edit_history: impl Fn(&mut History)) {
    for seed in SEEDS {
        let mut history = with_clients(&mut SessionFixture::new(seed));
        edit_history(&mut history);
        let expected: BTreeSet<String> = expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(names(&history), expected, "seed {seed}");
    }
}

/// Numbers the events again, as a server without the removed or added event would have.
fn renumber(fixture: &mut SessionFixture) {
    let (mut seq, mut sub) = (Seq(0), Sub(0));
    for event in &mut fixture.events {
        if event.body.kind().is_persisted() {
            (seq, sub) = (seq.next(), Sub(0));
        } else if event.id.sub == Sub::LAST {
            sub = Sub::LAST;
        } else {
            sub = sub.next();
        }
        event.id = Position {
            seq,
            sub,
            ..event.id
        };
    }
}

fn index(fixture: &SessionFixture, wanted: impl Fn(&Event) -> bool) -> usize {
    fixture
        .events
        .iter()
        .position(wanted)
        .expect("every fixture has one")
}

fn kind(kind: EventType) -> impl Fn(&Event) -> bool {
    move |event| event.body.kind() == kind
}

/// The index of the first event of a type among the entries of the client "live".
fn live_line(history: &History, text: &str) -> usize {
    let wanted = format!("\"type\":\"{text}\"");
    let lines = &history.connections[0].lines;
    let at = lines
        .iter()
        .position(|line| matches!(line, ConnectionEntry::Received(f) if f.text.contains(&wanted)));
    at.expect("every fixture has one")
}

fn edit(line: &mut ConnectionEntry, from: &str, to: &str) {
    let ConnectionEntry::Received(frame) = line else {
        panic!("not a frame")
    };
    assert!(frame.text.contains(from), "{}", frame.text);
    frame.text = frame.text.replacen(from, to, 1);
}
