//! The events of one message for cursors before, inside and after it.
//!
//! ```text
//!   7       start
//!   7.1-3   text      "ab" "cd" "ef"
//!   8.1     text      "gh"          after the next persisted event
//!   8.2-3   reasoning "ij" "kl"     the second with a signature
//!   8.4     reasoning "mn"
//!   8.5-7   tool use  start, "{" "}"
//!   8.8     tool use  end
//!   9       end
//! ```

use serde_json::{Value, json};

use super::*;
use crate::content::{StopReason, TokenUsage};
use crate::id::{MessageId, ToolUseId, TurnId, Ulid};
use crate::position::{Epoch, Seq, Sub};

const ID: MessageId = MessageId(Ulid(1));
const TOOL: ToolUseId = ToolUseId(Ulid(4));

fn at(seq: u64, sub: u32) -> Position {
    Position {
        epoch: Epoch(1),
        seq: Seq(seq),
        sub: Sub(sub),
    }
}

fn time(at: Position) -> Timestamp {
    Timestamp::from_millis((at.seq.0 * 100 + u64::from(at.sub.0)) as i64)
}

fn text(block: u32, text: &str) -> Body {
    Body::TextDelta(TextDelta {
        message_id: ID,
        content_block_index: block,
        text: text.into(),
    })
}

fn thinking(text: &str, signature: Option<&str>) -> Body {
    Body::ThinkingDelta(ThinkingDelta {
        message_id: ID,
        content_block_index: 1,
        text: text.into(),
        signature: signature.map(str::to_owned),
        after_text: true,
    })
}

fn input(partial_json: &str) -> Body {
    Body::ToolUseInputDelta(ToolUseInputDelta {
        message_id: ID,
        content_block_index: 2,
        tool_use_id: TOOL,
        partial_json: partial_json.into(),
    })
}

fn folded(deltas: &[(Position, Body)]) -> MessageFold {
    let start = at(7, 0);
    let mut fold = MessageFold::new(ID, TurnId(Ulid(3)), "m".into(), start, time(start));
    for (at, body) in deltas {
        fold.apply(*at, time(*at), body);
    }
    fold
}

fn message() -> MessageFold {
    let tool_start = ToolUseStart {
        message_id: ID,
        content_block_index: 2,
        tool_use_id: TOOL,
        tool_name: "echo".into(),
    };
    let tool_end = ToolUseEnd {
        message_id: ID,
        content_block_index: 2,
        tool_use_id: TOOL,
        final_input: json!({}),
    };
    let mut fold = folded(&[
        (at(7, 1), text(0, "ab")),
        (at(7, 2), text(0, "cd")),
        (at(7, 3), text(0, "ef")),
        (at(8, 1), text(0, "gh")),
        (at(8, 2), thinking("ij", None)),
        (at(8, 3), thinking("kl", Some("seal"))),
        (at(8, 4), thinking("mn", None)),
        (at(8, 5), Body::ToolUseStart(tool_start)),
        (at(8, 6), input("{")),
        (at(8, 7), input("}")),
        (at(8, 8), Body::ToolUseEnd(tool_end)),
    ]);
    let end = at(9, 0);
    fold.completed = Some((end, time(end), StopReason::EndTurn, TokenUsage::default()));
    fold
}

/// Everything to `upto` for a client at `since`, in one page.
fn page(since: Position, upto: Position) -> ReplayRange {
    ReplayRange {
        since,
        upto,
        from: since,
        to: upto,
    }
}

/// Position and payload of each event, in short.
fn replayed(message: &MessageFold, range: ReplayRange, missed: FinishedReplay) -> Vec<String> {
    let events = events(message, SessionId(Ulid(6)), range, missed);
    let line = |event: &Event| {
        assert_eq!(event.timestamp, time(event.id), "{event:?}");
        assert_eq!(event.turn_id, Some(message.turn_id));
        let at = format!("{}.{}", event.id.seq.0, event.id.sub.0);
        let json: Value = serde_json::from_slice(&event.to_bytes()).expect("JSON");
        let payload = &json["payload"];
        let fields = [
            "text",
            "signature",
            "partial_json",
            "tool_name",
            "final_input",
        ];
        let fields = fields.map(|field| payload[field].as_str().unwrap_or_default());
        format!("{at} {} {}", event.body.kind().name(), fields.concat())
            .trim()
            .to_owned()
    };
    events.iter().map(line).collect()
}

const JOINED: [&str; 8] = [
    "7.3 text.delta abcdef",
    "8.1 text.delta gh",
    "8.3 thinking.delta ijklseal",
    "8.4 thinking.delta mn",
    "8.5 tool.use_start echo",
    "8.7 tool.use_input_delta {}",
    "8.8 tool.use_end",
    "9.0 message.complete",
];

// S3-039
#[test]
fn finished_message_is_replayed_as_start_and_end() {
    let all = page(at(6, 0), at(9, 0));
    let ends = ["7.0 message.start", "9.0 message.complete"];
    assert_eq!(replayed(&message(), all, FinishedReplay::Ends), ends);
}

#[test]
fn deltas_are_joined_within_one_block_and_number() {
    let all = page(at(6, 0), at(9, 0));
    let mut expected = vec!["7.0 message.start"];
    expected.extend(JOINED);
    assert_eq!(replayed(&message(), all, FinishedReplay::Deltas), expected);
    let each = replayed(&message(), all, FinishedReplay::EachDelta);
    let ids: Vec<_> = each
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let sent = [
        "7.0", "7.1", "7.2", "7.3", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "9.0",
    ];
    assert_eq!(ids, sent);
}

// S3-038, S3-039
#[test]
fn cursor_inside_a_message_gets_its_rest() {
    for missed in [FinishedReplay::Ends, FinishedReplay::Deltas] {
        let rest = |since| replayed(&message(), page(since, at(9, 0)), missed);
        let mut expected = JOINED.to_vec();
        assert_eq!(rest(at(7, 0)), expected);
        expected[0] = "7.3 text.delta cdef";
        assert_eq!(rest(at(7, 1)), expected);
        assert_eq!(rest(at(7, 3)), JOINED[1..]);
        let mut expected = JOINED[5..].to_vec();
        expected[0] = "8.7 tool.use_input_delta }";
        assert_eq!(rest(at(8, 6)), expected);
        assert_eq!(rest(at(8, 8)), JOINED[7..]);
        assert_eq!(rest(at(9, 0)), [""; 0]);
    }
}

#[test]
fn message_in_flight_at_the_end_of_the_replay_has_its_deltas() {
    let range = page(at(6, 0), at(8, 1));
    let expected = ["7.0 message.start", JOINED[0], JOINED[1]];
    assert_eq!(replayed(&message(), range, FinishedReplay::Ends), expected);
}

#[test]
fn pages_of_a_replay_cover_it_once() {
    let whole = page(at(6, 0), at(9, 0));
    let all = replayed(&message(), whole, FinishedReplay::EachDelta);
    for cut in [at(6, 5), at(7, 0), at(7, 2), at(8, 0), at(8, 8)] {
        let first = ReplayRange { to: cut, ..whole };
        let second = ReplayRange { from: cut, ..whole };
        let mut both = replayed(&message(), first, FinishedReplay::EachDelta);
        both.extend(replayed(&message(), second, FinishedReplay::EachDelta));
        assert_eq!(both, all, "{cut:?}");
    }
}

#[test]
fn deltas_with_a_gap_between_them_are_not_joined() {
    let deltas = [
        (at(7, 1), text(0, "a")),
        (at(7, 3), text(0, "b")),
        (at(7, 4), text(1, "c")),
        (at(7, 5), text(1, "d")),
    ];
    let expected = ["7.1 text.delta a", "7.3 text.delta b", "7.5 text.delta cd"];
    let range = page(at(7, 0), at(8, 0));
    let replayed = replayed(&folded(&deltas), range, FinishedReplay::Deltas);
    assert_eq!(replayed, expected);
}

#[test]
fn reasoning_before_and_after_text_is_not_joined() {
    let mut early = thinking("a", None);
    if let Body::ThinkingDelta(delta) = &mut early {
        delta.after_text = false;
    }
    let deltas = [(at(7, 1), early), (at(7, 2), thinking("b", None))];
    let range = page(at(7, 0), at(8, 0));
    let replayed = replayed(&folded(&deltas), range, FinishedReplay::Deltas);
    assert_eq!(replayed, ["7.1 thinking.delta a", "7.2 thinking.delta b"]);
}

#[test]
fn joined_delta_has_a_bounded_size() {
    let half = "x".repeat(JOINED_BYTES_MAX / 2);
    let parts = [&half, &half, "y", &half, &half];
    let positions = (1..).map(|sub| at(7, sub));
    let deltas: Vec<_> = positions.zip(parts.map(|part| text(0, part))).collect();
    let range = page(at(7, 0), at(8, 0));
    let events = events(
        &folded(&deltas),
        SessionId(Ulid(6)),
        range,
        FinishedReplay::Deltas,
    );
    let sizes = events.iter().map(|event| {
        let Body::TextDelta(delta) = &event.body else {
            panic!("{event:?}");
        };
        (event.id.sub.0, delta.text.len())
    });
    let half = JOINED_BYTES_MAX / 2;
    let expected = [(2, 2 * half), (4, 1 + half), (5, half)];
    assert_eq!(sizes.collect::<Vec<_>>(), expected);
}

#[test]
fn cuts_that_cover_more_than_the_stored_text_are_left_out() {
    let mut message = message();
    message.blocks[0] = BlockFold::Text("abcd".into());
    let lines = replayed(&message, page(at(7, 2), at(9, 0)), FinishedReplay::Deltas);
    assert_eq!(lines, JOINED[2..]);
    message.blocks.truncate(1);
    let lines = replayed(&message, page(at(7, 2), at(9, 0)), FinishedReplay::Deltas);
    assert_eq!(lines, JOINED[7..]);
}
