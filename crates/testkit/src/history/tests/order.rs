//! Doctored order (I2): holes, gaps, repetitions, what was not asked for.

use super::*;

// I2
#[test]
fn sequence_gap_in_log_is_reported() {
    fixture_violates(&["NotDense"], |fixture| {
        for event in &mut fixture.events {
            if event.id.seq > Seq(4) {
                event.id.seq = event.id.seq.next();
            }
        }
        fixture.lost = fixture
            .lost
            .iter()
            .map(|&id| {
                if id.seq > Seq(4) {
                    Position {
                        seq: id.seq.next(),
                        ..id
                    }
                } else {
                    id
                }
            })
            .collect();
    });
}

// I2
#[test]
fn missed_event_is_reported() {
    history_violates(&["Missed"], |history| {
        let at = live_line(history, "route.decided");
        history.connections[0].lines.remove(at);
    });
}

// I2
#[test]
fn event_sent_twice_is_reported() {
    history_violates(&["Twice"], |history| {
        let at = live_line(history, "route.decided");
        let line = history.connections[0].lines[at].clone();
        history.connections[0].lines.insert(at + 1, line);
    });
}

// I2
#[test]
fn event_repeated_after_resume_is_reported() {
    history_violates(&["Twice"], |history| {
        let mut again = history.connections[0].clone();
        let last = again.lines.last().expect("the last event").clone();
        let ConnectionEntry::Received(frame) = &last else {
            panic!("not a frame")
        };
        let id: serde_json::Value = serde_json::from_str(&frame.text).expect("a frame");
        let since: Position = id["event"]["id"]
            .as_str()
            .expect("an id")
            .parse()
            .expect("an id");
        let ConnectionEntry::Subscribed(subscribe) = &mut again.lines[0] else {
            panic!("not a subscribe")
        };
        subscribe.since = Some(since);
        again.lines.truncate(2);
        again.lines.push(last);
        history.connections.push(again);
    });
}

// I2
#[test]
fn non_increasing_event_ids_are_reported() {
    history_violates(&["NotRising", "Missed"], |history| {
        // Three persisted events in a row come in the wrong order.
        let at = live_line(history, "turn.started");
        history.connections[0].lines.swap(at, at + 1);
    });
}

// I2
#[test]
fn event_outside_filter_is_reported() {
    history_violates(&["Unwanted"], |history| {
        for line in &mut history.connections[0].lines {
            if let ConnectionEntry::Subscribed(subscribe) = line {
                subscribe.filter = turnwire_event::EventFilter::of(
                    turnwire_event::TypeSet::filterable()
                        .iter()
                        .filter(|&kind| kind != EventType::RouteDecided)
                        .collect(),
                );
            }
        }
    });
}

// I2
#[test]
fn overstated_replay_count_is_reported() {
    history_violates(&["ReplayCount"], |history| {
        let late = history
            .connections
            .iter_mut()
            .find(|c| c.client == "late")
            .expect("a late client");
        let ConnectionEntry::Received(frame) = &mut late.lines[1] else {
            panic!("not a frame")
        };
        frame.text = r#"{"type":"subscribe_ack","replay_event_count":100000}"#.into();
    });
}
