//! Altered chat streams: the checker reports exactly the broken guarantee of each.

use super::super::fixture_viewers::with_viewers;
use super::super::record::{ChatEnd, ChatRecord, ChatRequest};
use super::*;

/// Applies a change to what was seen, and says what must be found.
fn history_violates(expected: &[&str], edit_fixture: impl Fn(&mut History)) {
    for seed in 0..4 {
        let mut history = with_viewers(&mut SessionFixture::new(seed));
        // The other wire has its own tests.
        history.connections.clear();
        edit_fixture(&mut history);
        let expected: BTreeSet<String> = expected.iter().map(|&name| name.to_owned()).collect();
        let violations = history.violations();
        let names: BTreeSet<String> = violations
            .iter()
            .map(super::super::Violation::name)
            .collect();
        assert_eq!(names, expected, "seed {seed}: {violations:#?}");
    }
}

/// The stream of one that stayed, of the first turn that has a block with `text`.
fn live<'a>(history: &'a mut History, text: &str) -> (&'a mut ChatRecord, usize) {
    let has = |chat: &ChatRecord| chat.blocks.iter().position(|b| b.text.contains(text));
    let live = history.chats.iter_mut().filter(|c| c.client == "chat live");
    live.filter_map(|chat| has(chat).map(|at| (chat, at)))
        .next()
        .expect("every story has one")
}

fn event(name: &str) -> String {
    format!("event: {name}\n")
}

/// Changes the first frame of a type.
fn edited(expected: &[&str], name: &str, from: &str, to: &str) {
    history_violates(expected, |history| {
        let (chat, at) = live(history, &event(name));
        let text = &mut chat.blocks[at].text;
        assert!(text.contains(from), "{text}");
        *text = text.replacen(from, to, 1);
    });
}

#[test]
fn valid_chat_histories_have_no_violation() {
    for seed in 0..40 {
        let history = with_viewers(&mut SessionFixture::new(seed));
        assert_eq!(history.violations(), [], "seed {seed}");
        assert!(history.chats.len() > 15);
        assert!(history.chats.iter().any(|chat| !chat.tail.is_empty()));
        assert!(
            history
                .chats
                .iter()
                .filter_map(|c| c.head.as_ref())
                .any(|h| h.status == 204)
        );
        history.assert_clean();
    }
}

// I1
#[test]
fn accepted_turn_missing_from_log_is_reported() {
    history_violates(&["TurnLost"], |history| {
        let (chat, _) = live(history, &event("episode"));
        let mut other = chat.clone();
        let head = other.head.as_mut().expect("a head");
        let name = head.headers.iter_mut().find(|(n, _)| n == "x-response-id");
        name.expect("a name").1 = "resp_00000000000000000000000ZZZ".into();
        other.blocks.clear();
        other.end = Some(ChatEnd::Cut);
        other.stays_to_end = false;
        history.chats.push(other);
    });
}

// I1
#[test]
fn frame_not_derived_from_log_is_reported() {
    edited(&["ChatChanged"], "usage", "_tokens\":", "_tokens\":1");
    edited(&["ChatLost", "ChatMissed"], "episode", "-1-", "-2-");
}

// I2
#[test]
fn missing_frame_is_reported() {
    history_violates(&["ChatMissed"], |history| {
        let (chat, at) = live(history, &event("episode"));
        chat.blocks.remove(at);
    });
}

// I2
#[test]
fn duplicate_frame_is_reported() {
    history_violates(&["ChatTwice"], |history| {
        let (chat, at) = live(history, &event("episode"));
        let again = chat.blocks[at].clone();
        chat.blocks.insert(at + 1, again);
    });
}

// I2
#[test]
fn frame_repeated_after_resume_is_reported() {
    history_violates(
        &["ChatTwice", "ChatAfterTerminal", "ChatWrongStatus"],
        |history| {
            let (chat, at) = live(history, &event("completed"));
            let mut again = chat.clone();
            let last = Block::read(&chat.blocks[at].text, false).expect("a block");
            let turn = again
                .head
                .as_ref()
                .and_then(|head| head.turn())
                .expect("a turn");
            again.request = ChatRequest::Resume(turn, last.id());
            again.blocks.drain(..at);
            again.blocks[0].text.insert_str(0, "retry: 1\n");
            history.chats.push(again);
        },
    );
}

// I2
#[test]
fn non_increasing_frame_ids_are_reported() {
    history_violates(&["ChatNotRising", "ChatTimeBack"], |history| {
        // Two frames change places: the first of them then comes too late.
        let (chat, at) = live(history, &event("tool_call"));
        let indicator = chat.blocks[..at]
            .iter()
            .position(|b| b.text.contains("event: thinking"));
        chat.blocks
            .swap(at, indicator.expect("the model thinks first"));
        chat.blocks.drain(indicator.expect("found") + 1..at);
        // Its words are gone too; another test tells of those.
        chat.blocks.truncate(indicator.expect("found") + 2);
        chat.end = Some(ChatEnd::Cut);
        chat.stays_to_end = false;
    });
}

// I2
#[test]
fn text_outside_model_calls_is_reported() {
    history_violates(&["ChatStray"], |history| {
        let (chat, at) = live(history, &event("text"));
        let words = chat.blocks[at].text.clone();
        let opening = Block::read(&chat.blocks[1].text, false).expect("the episode");
        let place = Position {
            sub: Sub(1),
            ..opening.id().expect("an id").position
        };
        let old = Block::read(&words, false)
            .expect("a block")
            .id()
            .expect("an id");
        let time = |text: &str| {
            let at = text.find("timestamp\":\"").expect("a time") + 12;
            text[at..at + 24].to_owned()
        };
        let moved = words
            .replace(&old.position.to_string(), &place.to_string())
            .replace(&time(&words), &time(&chat.blocks[1].text));
        let mut frame = chat.blocks[1].clone();
        frame.text = moved;
        chat.blocks.insert(2, frame);
    });
}

// S1-002
#[test]
fn incomplete_frame_envelope_is_reported() {
    edited(
        &["ChatEnvelope", "ChatChanged"],
        "episode",
        "\"0.5\"",
        "\"0.4\"",
    );
    edited(
        &["ChatEnvelope", "ChatChanged"],
        "usage",
        "\"cached_tokens\"",
        "\"cache\"",
    );
    edited(
        &["ChatEnvelope", "ChatChanged"],
        "text",
        "\"type\":\"chunk\",",
        "",
    );
    edited(
        &["ChatEnvelope", "ChatChanged"],
        "completed",
        "resp_0",
        "resp_1",
    );
}

// S1-009
#[test]
fn decreasing_timestamp_is_reported() {
    edited(
        &["ChatTimeBack"],
        "text",
        "\"timestamp\":\"19",
        "\"timestamp\":\"18",
    );
}

// S1-013
#[test]
fn response_head_of_another_session_is_reported() {
    history_violates(&["ChatHead"], |history| {
        let (chat, _) = live(history, &event("episode"));
        let head = chat.head.as_mut().expect("a head");
        let name = head.headers.iter_mut().find(|(n, _)| n == "x-session-id");
        name.expect("a name").1 = "sess_00000000000000000000000ZZZ".into();
    });
}

// S1-022
#[test]
fn response_id_not_first_is_reported() {
    history_violates(&["ChatFirst", "ChatNotRising"], |history| {
        let (chat, _) = live(history, &event("episode"));
        chat.blocks.swap(0, 1);
        chat.blocks[1].text = chat.blocks[1].text.replacen("retry: 1000\n", "", 1);
        chat.blocks[0].text.insert_str(0, "retry: 1000\n");
    });
}

// D-09
#[test]
fn unrequested_protocol_version_is_reported() {
    history_violates(&["ChatVersion"], |history| {
        live(history, &event("episode")).0.version = Some("0.4".into());
    });
}

// I3
#[test]
fn missing_terminal_frame_is_reported() {
    history_violates(&["ChatUnended"], |history| {
        let (chat, at) = live(history, &event("completed"));
        chat.blocks.truncate(at);
        chat.end = Some(ChatEnd::Lost);
    });
}

// I3
#[test]
fn frame_after_terminal_is_reported() {
    history_violates(&["ChatAfterTerminal", "ChatLost"], |history| {
        let (chat, at) = live(history, &event("completed"));
        let mut copy = chat.blocks[at].clone();
        copy.text = copy.text.replacen("-1-", "-2-", 1);
        chat.blocks.insert(at + 1, copy);
    });
}

// I3
#[test]
fn missing_early_or_misplaced_sentinel_is_reported() {
    history_violates(&["ChatSentinel"], |history| {
        let (chat, at) = live(history, "[DONE]");
        chat.blocks.remove(at);
    });
    history_violates(&["ChatSentinel"], |history| {
        let (chat, at) = live(history, &event("completed"));
        let at = at + 1;
        chat.blocks.remove(at);
        chat.end = Some(ChatEnd::Lost);
        // No kill is near enough to explain it.
        chat.blocks[at - 1].at += std::time::Duration::from_secs(30);
    });
    history_violates(&["ChatSentinel"], |history| {
        let (chat, at) = live(history, "[DONE]");
        let done = chat.blocks[at].clone();
        chat.blocks.insert(2, done);
    });
    history_violates(&["ChatSentinel"], |history| {
        let (chat, at) = live(history, "[DONE]");
        let mut copy = chat.blocks[at].clone();
        copy.text = ": ka\n\n".into();
        chat.blocks.push(copy);
    });
}

// I3
#[test]
fn premature_end_of_replay_answer_is_reported() {
    history_violates(&["ChatWrongStatus"], |history| {
        let ended = history
            .chats
            .iter_mut()
            .find(|c| c.head.as_ref().is_some_and(|h| h.status == 204));
        let ended = ended.expect("one was told");
        let ChatRequest::Resume(_, cursor) = &mut ended.request else {
            panic!("a resume")
        };
        *cursor = Some(Position::persisted(turnwire_event::Epoch::FIRST, Seq(1)).into());
    });
}

// I3
#[test]
fn misplaced_cost_frame_is_reported() {
    history_violates(&["ChatUsage", "ChatMissed"], |history| {
        let (chat, at) = live(history, &event("usage"));
        chat.blocks.remove(at);
    });
}

// I4
#[test]
fn mismatched_or_missing_tool_end_is_reported() {
    edited(
        &["ChatTool", "ChatChanged"],
        "tool_completed",
        "\"echo\"",
        "\"ohce\"",
    );
    history_violates(&["ChatTool", "ChatMissed"], |history| {
        let (chat, at) = live(history, &event("tool_completed"));
        chat.blocks.remove(at);
    });
    history_violates(&["ChatTool", "ChatMissed"], |history| {
        let (chat, at) = live(history, &event("tool_call"));
        chat.blocks.remove(at);
    });
}

// I5
#[test]
fn text_differing_from_stored_message_is_reported() {
    edited(
        &["ChatText"],
        "text",
        "\"chunk\":\"word",
        "\"chunk\":\"Word",
    );
    history_violates(&["ChatText"], |history| {
        let (chat, at) = live(history, &event("text"));
        chat.blocks.remove(at);
    });
    // Also where the viewer did not stay until the message was whole.
    history_violates(&["ChatText"], |history| {
        let (chat, at) = live(history, &event("text"));
        chat.blocks.truncate(at + 2);
        chat.blocks.remove(at);
        chat.end = Some(ChatEnd::Cut);
        chat.stays_to_end = false;
    });
}

// I5
#[test]
fn text_lost_outside_crash_window_is_reported() {
    history_violates(&["ChatText"], |history| {
        history.faults.clear();
    });
    history_violates(&["ChatCheckpointLate"], |history| {
        for fault in &mut history.faults {
            fault.at += std::time::Duration::from_secs(60);
        }
    });
}

#[test]
fn malformed_stream_bytes_are_reported() {
    history_violates(&["Unreadable"], |history| {
        let (chat, _) = live(history, &event("episode"));
        chat.end = Some(ChatEnd::Invalid("nonsense".into()));
    });
    history_violates(&["Unreadable", "ChatMissed"], |history| {
        let (chat, at) = live(history, &event("episode"));
        chat.blocks[at].text = chat.blocks[at].text.replacen('\n', "\r\n", 1);
    });
    history_violates(&["Unreadable"], |history| {
        let (chat, at) = live(history, &event("completed"));
        chat.blocks.truncate(at);
        chat.end = Some(ChatEnd::Cut);
        chat.stays_to_end = false;
        chat.tail = b"nonsense".to_vec();
    });
}
