//! Doctored promises of durability (I1) and the hash chain.

use super::*;

// I1
#[test]
fn lost_turn_is_reported() {
    history_violates(&["TurnLost"], |history| {
        let request = history
            .requests
            .iter_mut()
            .find(|r| r.path.ends_with("/turns"));
        let (_, body) = request
            .and_then(|r| r.answer.as_mut())
            .expect("a turn was accepted");
        *body = body.replace("\"turn_id\":\"0", "\"turn_id\":\"1");
    });
}

// I1
#[test]
fn lost_cancel_is_reported() {
    history_violates(&["CancelLost"], |history| {
        let request = history
            .requests
            .iter_mut()
            .find(|r| r.path.ends_with("/cancel"));
        let (_, body) = request
            .and_then(|r| r.answer.as_mut())
            .expect("a cancel was accepted");
        *body = body.replace("cancelling", "completed");
    });
}

// I1
#[test]
fn lost_feedback_is_reported() {
    history_violates(&["FeedbackLost"], |history| {
        let again = history
            .requests
            .iter()
            .find(|r| r.path.ends_with("/feedback"))
            .cloned();
        history.requests.extend(again);
    });
}

// I1
#[test]
fn lost_event_is_reported() {
    history_violates(&["EventLost"], |history| {
        // The last of the log is seen by the clients that came to the end, and by them alone.
        let log = &mut history.sessions[0];
        log.events.pop();
        // The request that promised it, and the snapshots' counts, are another story.
        history.requests.retain(|r| !r.path.ends_with("/feedback"));
        for connection in &mut history.connections {
            for line in &mut connection.lines {
                if let ConnectionEntry::Received(frame) = line
                    && frame.text.contains("subscribe_ack")
                {
                    frame.text = r#"{"type":"subscribe_ack","replay_event_count":0}"#.into();
                }
            }
        }
        history.connections.retain(|c| c.client == "live");
    });
}

// I1
#[test]
fn changed_event_is_reported() {
    history_violates(&["EventChanged"], |history| {
        let at = live_line(history, "route.decided");
        edit(
            &mut history.connections[0].lines[at],
            "\"reason\":\"default\"",
            "\"reason\":\"Default\"",
        );
    });
}

#[test]
fn broken_hash_chain_is_reported() {
    history_violates(&["ChainBroken"], |history| {
        let hash = &mut history.sessions[0].events[3].hash;
        let other = if hash.starts_with('0') { "1" } else { "0" };
        hash.replace_range(..1, other);
    });
}
