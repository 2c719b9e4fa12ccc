//! Doctored chat streams: of each exactly the broken promise is told.

use super::super::record::{Chat, ChatAsk, ChatEnd};
use super::super::viewers::viewed;
use super::*;

/// Applies a change to what was seen, and says what must be found.
fn found(expected: &[&str], doctor: impl Fn(&mut History)) {
    for seed in 0..4 {
        let mut history = viewed(&mut Story::new(seed));
        // The other wire has its own tests.
        history.connections.clear();
        doctor(&mut history);
        let expected: BTreeSet<String> = expected.iter().map(|&name| name.to_owned()).collect();
        let found = history.violations();
        let names: BTreeSet<String> = found.iter().map(super::super::Violation::name).collect();
        assert_eq!(names, expected, "seed {seed}: {found:#?}");
    }
}

/// The stream of one that stayed, of the first turn that has a block with `text`.
fn live<'a>(history: &'a mut History, text: &str) -> (&'a mut Chat, usize) {
    let has = |chat: &Chat| chat.blocks.iter().position(|b| b.text.contains(text));
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
    found(expected, |history| {
        let (chat, at) = live(history, &event(name));
        let text = &mut chat.blocks[at].text;
        assert!(text.contains(from), "{text}");
        *text = text.replacen(from, to, 1);
    });
}

#[test]
fn good_chats_are_clean() {
    for seed in 0..40 {
        let history = viewed(&mut Story::new(seed));
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

#[test]
fn i1_an_accepted_turn_that_is_not_in_the_log_is_told() {
    found(&["TurnLost"], |history| {
        let (chat, _) = live(history, &event("episode"));
        let mut other = chat.clone();
        let head = other.head.as_mut().expect("a head");
        let name = head.headers.iter_mut().find(|(n, _)| n == "x-response-id");
        name.expect("a name").1 = "resp_00000000000000000000000ZZZ".into();
        other.blocks.clear();
        other.end = Some(ChatEnd::Cut);
        other.to_the_end = false;
        history.chats.push(other);
    });
}

#[test]
fn i1_a_frame_that_the_log_does_not_give_is_told() {
    edited(&["ChatChanged"], "usage", "_tokens\":", "_tokens\":1");
    edited(&["ChatLost", "ChatMissed"], "episode", "-1\n", "-2\n");
}

#[test]
fn i2_a_frame_that_never_came_is_told() {
    found(&["ChatMissed"], |history| {
        let (chat, at) = live(history, &event("episode"));
        chat.blocks.remove(at);
    });
}

#[test]
fn i2_a_frame_that_came_twice_is_told() {
    found(&["ChatTwice"], |history| {
        let (chat, at) = live(history, &event("episode"));
        let again = chat.blocks[at].clone();
        chat.blocks.insert(at + 1, again);
    });
}

#[test]
fn i2_a_frame_that_comes_again_after_a_resume_is_told() {
    found(&["ChatTwice", "ChatAfterTerminal", "ChatOver"], |history| {
        let (chat, at) = live(history, &event("completed"));
        let mut again = chat.clone();
        let last = Block::read(&chat.blocks[at].text, false).expect("a block");
        let turn = again
            .head
            .as_ref()
            .and_then(|head| head.turn())
            .expect("a turn");
        again.asked = ChatAsk::Resume(turn, last.id());
        again.blocks.drain(..at);
        again.blocks[0].text.insert_str(0, "retry: 1\n");
        history.chats.push(again);
    });
}

#[test]
fn i2_ids_that_do_not_rise_are_told() {
    found(&["ChatNotRising", "ChatTimeBack"], |history| {
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
        chat.to_the_end = false;
    });
}

#[test]
fn i2_words_outside_of_the_models_calls_are_told() {
    found(&["ChatStray"], |history| {
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

#[test]
fn s1_002_an_envelope_that_is_not_whole_is_told() {
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

#[test]
fn s1_009_time_that_goes_back_is_told() {
    edited(
        &["ChatTimeBack"],
        "text",
        "\"timestamp\":\"19",
        "\"timestamp\":\"18",
    );
}

#[test]
fn s1_013_a_head_that_names_another_session_is_told() {
    found(&["ChatHead"], |history| {
        let (chat, _) = live(history, &event("episode"));
        let head = chat.head.as_mut().expect("a head");
        let name = head.headers.iter_mut().find(|(n, _)| n == "x-session-id");
        name.expect("a name").1 = "sess_00000000000000000000000ZZZ".into();
    });
}

#[test]
fn s1_022_a_turn_whose_name_is_not_first_is_told() {
    found(&["ChatFirst", "ChatNotRising"], |history| {
        let (chat, _) = live(history, &event("episode"));
        chat.blocks.swap(0, 1);
        chat.blocks[1].text = chat.blocks[1].text.replacen("retry: 1000\n", "", 1);
        chat.blocks[0].text.insert_str(0, "retry: 1000\n");
    });
}

#[test]
fn d_09_another_version_than_was_asked_for_is_told() {
    found(&["ChatVersion"], |history| {
        live(history, &event("episode")).0.version = Some("0.4".into());
    });
}

#[test]
fn i3_an_ending_that_never_came_is_told() {
    found(&["ChatUnended"], |history| {
        let (chat, at) = live(history, &event("completed"));
        chat.blocks.truncate(at);
        chat.end = Some(ChatEnd::Lost);
    });
}

#[test]
fn i3_a_frame_after_the_terminal_is_told() {
    found(&["ChatAfterTerminal", "ChatLost"], |history| {
        let (chat, at) = live(history, &event("completed"));
        let mut more = chat.blocks[at].clone();
        more.text = more.text.replacen("-1\n", "-2\n", 1);
        chat.blocks.insert(at + 1, more);
    });
}

#[test]
fn i3_a_sentinel_that_is_missing_early_or_not_last_is_told() {
    found(&["ChatSentinel"], |history| {
        let (chat, at) = live(history, "[DONE]");
        chat.blocks.remove(at);
    });
    found(&["ChatSentinel"], |history| {
        let (chat, at) = live(history, &event("completed"));
        let at = at + 1;
        chat.blocks.remove(at);
        chat.end = Some(ChatEnd::Lost);
        // No kill is near enough to explain it.
        chat.blocks[at - 1].at += std::time::Duration::from_secs(30);
    });
    found(&["ChatSentinel"], |history| {
        let (chat, at) = live(history, "[DONE]");
        let done = chat.blocks[at].clone();
        chat.blocks.insert(2, done);
    });
    found(&["ChatSentinel"], |history| {
        let (chat, at) = live(history, "[DONE]");
        let mut more = chat.blocks[at].clone();
        more.text = ": ka\n\n".into();
        chat.blocks.push(more);
    });
}

#[test]
fn i3_an_answer_that_all_is_over_when_it_is_not_is_told() {
    found(&["ChatOver"], |history| {
        let told = history
            .chats
            .iter_mut()
            .find(|c| c.head.as_ref().is_some_and(|h| h.status == 204));
        let told = told.expect("one was told");
        let ChatAsk::Resume(_, cursor) = &mut told.asked else {
            panic!("a resume")
        };
        *cursor = Some(Position::persisted(turnwire_event::Epoch::FIRST, Seq(1)).into());
    });
}

#[test]
fn i3_a_price_in_the_wrong_place_is_told() {
    found(&["ChatUsage", "ChatMissed"], |history| {
        let (chat, at) = live(history, &event("usage"));
        chat.blocks.remove(at);
    });
}

#[test]
fn i4_a_tool_that_ends_as_another_or_not_at_all_is_told() {
    edited(
        &["ChatTool", "ChatChanged"],
        "tool_completed",
        "\"echo\"",
        "\"ohce\"",
    );
    found(&["ChatTool", "ChatMissed"], |history| {
        let (chat, at) = live(history, &event("tool_completed"));
        chat.blocks.remove(at);
    });
    found(&["ChatTool", "ChatMissed"], |history| {
        let (chat, at) = live(history, &event("tool_call"));
        chat.blocks.remove(at);
    });
}

#[test]
fn i5_words_that_are_not_those_that_are_stored_are_told() {
    edited(
        &["ChatText"],
        "text",
        "\"chunk\":\"word",
        "\"chunk\":\"Word",
    );
    found(&["ChatText"], |history| {
        let (chat, at) = live(history, &event("text"));
        chat.blocks.remove(at);
    });
    // Also where the viewer did not stay until the message was whole.
    found(&["ChatText"], |history| {
        let (chat, at) = live(history, &event("text"));
        chat.blocks.truncate(at + 2);
        chat.blocks.remove(at);
        chat.end = Some(ChatEnd::Cut);
        chat.to_the_end = false;
    });
}

#[test]
fn i5_words_lost_without_a_crash_or_long_before_it_are_told() {
    found(&["ChatText"], |history| {
        history.faults.clear();
    });
    found(&["ChatCheckpointLate"], |history| {
        for fault in &mut history.faults {
            fault.at += std::time::Duration::from_secs(60);
        }
    });
}

#[test]
fn bytes_that_are_no_stream_are_told() {
    found(&["Unreadable"], |history| {
        let (chat, _) = live(history, &event("episode"));
        chat.end = Some(ChatEnd::Garbled("nonsense".into()));
    });
    found(&["Unreadable", "ChatMissed"], |history| {
        let (chat, at) = live(history, &event("episode"));
        chat.blocks[at].text = chat.blocks[at].text.replacen('\n', "\r\n", 1);
    });
    found(&["Unreadable"], |history| {
        let (chat, at) = live(history, &event("completed"));
        chat.blocks.truncate(at);
        chat.end = Some(ChatEnd::Cut);
        chat.to_the_end = false;
        chat.tail = b"nonsense".to_vec();
    });
}
