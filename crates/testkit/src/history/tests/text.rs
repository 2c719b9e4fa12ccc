//! Doctored texts (I5): deltas, rows and hashes that do not agree.

use super::*;

// I5
#[test]
fn lost_delta_is_reported() {
    history_violates(&["TextDiffers"], |history| {
        let at = live_line(history, "text.delta");
        history.connections[0].lines.remove(at);
    });
}

// I5
#[test]
fn changed_delta_is_reported() {
    history_violates(&["TextDiffers"], |history| {
        let at = live_line(history, "text.delta");
        edit(
            &mut history.connections[0].lines[at],
            "\"text\":\"word",
            "\"text\":\"Word",
        );
    });
}

// I5
#[test]
fn tool_input_fragments_mismatch_is_reported() {
    history_violates(&["TextDiffers"], |history| {
        let at = live_line(history, "tool.use_input_delta");
        history.connections[0].lines.remove(at);
    });
}

// I5
#[test]
fn text_lost_without_crash_is_reported() {
    history_violates(
        &["SweptWithoutCrash", "CheckpointLate", "TextDiffers"],
        |history| {
            history.faults.clear();
            // One client cannot see the end of the message, so that it is judged by the row.
            let live = &mut history.connections[0];
            let end = live.lines.iter().position(
                |l| matches!(l, ConnectionEntry::Received(f) if f.text.contains(".ZZZZZZ")),
            );
            live.lines
                .remove(end.expect("the killed message has an end"));
        },
    );
}

// I5
#[test]
fn text_lost_long_before_crash_is_reported() {
    history_violates(&["CheckpointLate"], |history| {
        for fault in &mut history.faults {
            fault.at += std::time::Duration::from_secs(60);
        }
    });
}

// I5
#[test]
fn row_differing_from_events_is_reported() {
    history_violates(&["MessageDiffers"], |history| {
        for connection in &mut history.connections {
            for line in &mut connection.lines {
                if let ConnectionEntry::Received(frame) = line
                    && frame.text.contains("\"type\":\"message.complete\"")
                {
                    frame.text = frame
                        .text
                        .replace("\"output_tokens\":7", "\"output_tokens\":8");
                }
            }
        }
    });
}

// I5
#[test]
fn row_not_matching_its_hash_is_reported() {
    history_violates(&["HashDiffers"], |history| {
        history.connections.clear();
        for row in &mut history.sessions[0].messages {
            if row["role"] == "assistant" {
                row["content"][0]["text"] = "something else".into();
            }
        }
    });
}

// I5
#[test]
fn tool_result_not_matching_its_hash_is_reported() {
    history_violates(&["HashDiffers"], |history| {
        history.connections.clear();
        for row in &mut history.sessions[0].messages {
            if row["role"] == "tool" {
                row["content"][0]["content"] = "something else".into();
            }
        }
    });
}
