//! Doctored rows (I5) and frames that cannot be read.

use super::*;

// I5
#[test]
fn missing_message_row_is_reported() {
    history_violates(&["RowDiffers"], |history| {
        history.connections.clear();
        history.sessions[0].messages.remove(0);
    });
}

// I5
#[test]
fn message_row_without_event_is_reported() {
    history_violates(&["RowDiffers"], |history| {
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

// I5
#[test]
fn wrong_turn_row_state_is_reported() {
    history_violates(&["RowDiffers"], |history| {
        history.sessions[0].turns[0]["state"] = "running".into()
    });
}

// I5
#[test]
fn tool_call_row_still_running_is_reported() {
    history_violates(&["RowDiffers"], |history| {
        history.sessions[0].tool_calls[0]["status"] = "running".into()
    });
}

#[test]
fn unreadable_frame_is_reported() {
    history_violates(&["Unreadable"], |history| {
        let frame = ConnectionEntry::Received(super::super::ReceivedFrame {
            at: std::time::Duration::ZERO,
            text: "{\"type\":\"event\",\"event\":{\"id\":".into(),
        });
        history.connections[0].lines.push(frame);
    });
}
