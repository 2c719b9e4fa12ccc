//! Doctored rows (I5) and frames that cannot be read.

use super::*;

#[test]
fn i5_a_missing_message_row_is_told() {
    found(&["RowDiffers"], |history| {
        history.connections.clear();
        history.sessions[0].messages.remove(0);
    });
}

#[test]
fn i5_a_message_row_nobody_vouches_for_is_told() {
    found(&["RowDiffers"], |history| {
        history.connections.clear();
        let rows = &mut history.sessions[0].messages;
        let mut row = rows
            .iter()
            .find(|r| r["role"] == "assistant")
            .expect("a message")
            .clone();
        row["id"] = "00000000000000000000ZZZZZZ".into();
        rows.push(row);
    });
}

#[test]
fn i5_a_turn_row_in_the_wrong_state_is_told() {
    found(&["RowDiffers"], |history| {
        history.sessions[0].turns[0]["state"] = "running".into()
    });
}

#[test]
fn i5_a_tool_call_row_left_running_is_told() {
    found(&["RowDiffers"], |history| {
        history.sessions[0].tool_calls[0]["status"] = "running".into()
    });
}

#[test]
fn an_unreadable_frame_is_told() {
    found(&["Unreadable"], |history| {
        let frame = Line::Received(super::super::Frame {
            at: std::time::Duration::ZERO,
            text: "{\"type\":\"event\",\"event\":{\"id\":".into(),
        });
        history.connections[0].lines.push(frame);
    });
}
