//! Doctored texts (I5): deltas, rows and hashes that do not agree.

use super::*;

#[test]
fn i5_a_lost_delta_is_told() {
    found(&["TextDiffers"], |history| {
        let at = live_line(history, "text.delta");
        history.connections[0].lines.remove(at);
    });
}

#[test]
fn i5_a_changed_delta_is_told() {
    found(&["TextDiffers"], |history| {
        let at = live_line(history, "text.delta");
        edit(
            &mut history.connections[0].lines[at],
            "\"text\":\"word",
            "\"text\":\"Word",
        );
    });
}

#[test]
fn i5_tool_input_that_does_not_add_up_is_told() {
    found(&["TextDiffers"], |history| {
        let at = live_line(history, "tool.use_input_delta");
        history.connections[0].lines.remove(at);
    });
}

#[test]
fn i5_text_lost_without_a_crash_is_told() {
    found(
        &["SweptWithoutCrash", "CheckpointLate", "TextDiffers"],
        |history| {
            history.faults.clear();
            // One client cannot see the end of the message, so that it is judged by the row.
            let live = &mut history.connections[0];
            let end = live
                .lines
                .iter()
                .position(|l| matches!(l, Line::Received(f) if f.text.contains(".ZZZZZZ")));
            live.lines
                .remove(end.expect("the killed message has an end"));
        },
    );
}

#[test]
fn i5_text_lost_long_before_the_crash_is_told() {
    found(&["CheckpointLate"], |history| {
        for fault in &mut history.faults {
            fault.at += std::time::Duration::from_secs(60);
        }
    });
}

#[test]
fn i5_a_row_other_than_what_was_told_is_told() {
    found(&["MessageDiffers"], |history| {
        for connection in &mut history.connections {
            for line in &mut connection.lines {
                if let Line::Received(frame) = line
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

#[test]
fn i5_a_row_that_its_hash_does_not_fit_is_told() {
    found(&["HashDiffers"], |history| {
        history.connections.clear();
        for row in &mut history.sessions[0].messages {
            if row["role"] == "assistant" {
                row["content"][0]["text"] = "something else".into();
            }
        }
    });
}

#[test]
fn i5_a_result_that_its_hash_does_not_fit_is_told() {
    found(&["HashDiffers"], |history| {
        history.connections.clear();
        for row in &mut history.sessions[0].messages {
            if row["role"] == "tool" {
                row["content"][0]["content"] = "something else".into();
            }
        }
    });
}
