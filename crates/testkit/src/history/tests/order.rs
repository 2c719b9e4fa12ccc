//! Doctored order (I2): holes, gaps, repetitions, what was not asked for.

use super::*;

#[test]
fn i2_a_hole_in_the_log_is_told() {
    told(&["NotDense"], |story| {
        for event in &mut story.events {
            if event.id.seq > Seq(4) {
                event.id.seq = event.id.seq.next();
            }
        }
        story.lost = story
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

#[test]
fn i2_a_missed_event_is_told() {
    found(&["Missed"], |history| {
        let at = live_line(history, "route.decided");
        history.connections[0].lines.remove(at);
    });
}

#[test]
fn i2_an_event_sent_twice_is_told() {
    found(&["Twice"], |history| {
        let at = live_line(history, "route.decided");
        let line = history.connections[0].lines[at].clone();
        history.connections[0].lines.insert(at + 1, line);
    });
}

#[test]
fn i2_an_event_sent_again_after_a_resume_is_told() {
    found(&["Twice"], |history| {
        let mut again = history.connections[0].clone();
        let last = again.lines.last().expect("the last event").clone();
        let Line::Received(frame) = &last else {
            panic!("not a frame")
        };
        let id: serde_json::Value = serde_json::from_str(&frame.text).expect("a frame");
        let since: Position = id["event"]["id"]
            .as_str()
            .expect("an id")
            .parse()
            .expect("an id");
        let Line::Subscribed(subscribe) = &mut again.lines[0] else {
            panic!("not a subscribe")
        };
        subscribe.since = Some(since);
        again.lines.truncate(2);
        again.lines.push(last);
        history.connections.push(again);
    });
}

#[test]
fn i2_ids_that_do_not_rise_are_told() {
    found(&["NotRising", "Missed"], |history| {
        // Three persisted events in a row come in the wrong order.
        let at = live_line(history, "turn.started");
        history.connections[0].lines.swap(at, at + 1);
    });
}

#[test]
fn i2_an_unwanted_event_is_told() {
    found(&["Unwanted"], |history| {
        for line in &mut history.connections[0].lines {
            if let Line::Subscribed(subscribe) = line {
                subscribe.filter = turnwire_event::Filter::of(
                    turnwire_event::TypeSet::filterable()
                        .iter()
                        .filter(|&kind| kind != EventType::RouteDecided)
                        .collect(),
                );
            }
        }
    });
}

#[test]
fn i2_a_replay_that_was_promised_too_long_is_told() {
    found(&["ReplayCount"], |history| {
        let late = history
            .connections
            .iter_mut()
            .find(|c| c.client == "late")
            .expect("a late client");
        let Line::Received(frame) = &mut late.lines[1] else {
            panic!("not a frame")
        };
        frame.text = r#"{"type":"subscribe_ack","replay_event_count":100000}"#.into();
    });
}
