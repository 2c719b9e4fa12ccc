//! The checker on histories that are known: good ones are clean, and of each doctored one
//! exactly the broken promise is told.

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
use super::fixture_clients::watched;
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
        let history = watched(&mut SessionFixture::new(seed));
        assert_eq!(history.violations(), [], "seed {seed}");
        assert!(history.connections.len() > 6);
        history.assert_clean();
    }
}

/// Applies a change to the story before anyone looks, and says what must be found.
fn told(expected: &[&str], doctor: impl Fn(&mut SessionFixture)) {
    for seed in SEEDS {
        let mut story = SessionFixture::new(seed);
        doctor(&mut story);
        let expected: BTreeSet<String> = expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(names(&watched(&mut story)), expected, "seed {seed}");
    }
}

/// Applies a change to what was seen or stored, and says what must be found.
fn found(expected: &[&str], doctor: impl Fn(&mut History)) {
    for seed in SEEDS {
        let mut history = watched(&mut SessionFixture::new(seed));
        doctor(&mut history);
        let expected: BTreeSet<String> = expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(names(&history), expected, "seed {seed}");
    }
}

/// Gives the persisted events their numbers again, as a server that never had the removed or
/// added one would have.
fn renumber(story: &mut SessionFixture) {
    let (mut seq, mut sub) = (Seq(0), Sub(0));
    for event in &mut story.events {
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

fn index(story: &SessionFixture, wanted: impl Fn(&Event) -> bool) -> usize {
    story
        .events
        .iter()
        .position(wanted)
        .expect("every story has one")
}

fn kind(kind: EventType) -> impl Fn(&Event) -> bool {
    move |event| event.body.kind() == kind
}

/// The place of an event of some type among the lines of the client that watched throughout.
fn live_line(history: &History, text: &str) -> usize {
    let wanted = format!("\"type\":\"{text}\"");
    let lines = &history.connections[0].lines;
    let at = lines
        .iter()
        .position(|line| matches!(line, ConnectionEntry::Received(f) if f.text.contains(&wanted)));
    at.expect("every story has one")
}

fn edit(line: &mut ConnectionEntry, from: &str, to: &str) {
    let ConnectionEntry::Received(frame) = line else {
        panic!("not a frame")
    };
    assert!(frame.text.contains(from), "{}", frame.text);
    frame.text = frame.text.replacen(from, to, 1);
}
