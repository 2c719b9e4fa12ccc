//! A message with a block of each kind, built from its deltas, stored and read back.

use serde_json::json;

use super::*;
use crate::body::stream::{TextDelta, ThinkingDelta, ToolUseEnd, ToolUseInputDelta, ToolUseStart};
use crate::id::Ulid;
use crate::position::{Epoch, Seq, Sub};

const ID: MessageId = MessageId(Ulid(1));
const OTHER: MessageId = MessageId(Ulid(2));
const TURN: TurnId = TurnId(Ulid(3));
const TOOL: ToolUseId = ToolUseId(Ulid(4));
const SECOND_TOOL: ToolUseId = ToolUseId(Ulid(5));
const START: Position = Position::persisted(Epoch(1), Seq(7));
const END: Position = Position::persisted(Epoch(1), Seq(8));

fn at(sub: u32) -> Position {
    Position {
        sub: Sub(sub),
        ..START
    }
}

fn time(sub: u32) -> Timestamp {
    Timestamp::from_millis(1_000 + i64::from(sub))
}

fn new_message() -> MessageFold {
    MessageFold::new(ID, TURN, "m".into(), START, time(0))
}

fn text(message_id: MessageId, content_block_index: u32, text: &str) -> Body {
    Body::TextDelta(TextDelta {
        message_id,
        content_block_index,
        text: text.into(),
    })
}

fn thinking(message_id: MessageId, text: &str, signature: Option<&str>) -> Body {
    Body::ThinkingDelta(ThinkingDelta {
        message_id,
        content_block_index: 0,
        text: text.into(),
        signature: signature.map(str::to_owned),
        after_text: false,
    })
}

fn tool_start(message_id: MessageId, content_block_index: u32, tool_use_id: ToolUseId) -> Body {
    Body::ToolUseStart(ToolUseStart {
        message_id,
        content_block_index,
        tool_use_id,
        tool_name: "echo".into(),
    })
}

fn tool_input(message_id: MessageId, content_block_index: u32, partial_json: &str) -> Body {
    Body::ToolUseInputDelta(ToolUseInputDelta {
        message_id,
        content_block_index,
        tool_use_id: TOOL,
        partial_json: partial_json.into(),
    })
}

fn tool_end(message_id: MessageId) -> Body {
    Body::ToolUseEnd(ToolUseEnd {
        message_id,
        content_block_index: 3,
        tool_use_id: TOOL,
        final_input: json!({"a": 1}),
    })
}

fn complete(message_id: MessageId) -> Body {
    Body::MessageComplete(MessageComplete {
        message_id,
        stop_reason: StopReason::ToolUse,
        final_content: Vec::new(),
        usage: usage(),
    })
}

fn usage() -> TokenUsage {
    TokenUsage {
        input_tokens: 3,
        output_tokens: 2,
        total_tokens: 5,
        ..TokenUsage::default()
    }
}

/// The deltas of `message_id`: reasoning with a signature in two pieces, no block 1, text, a tool use
/// that ends and one that does not.
fn deltas(message_id: MessageId) -> [Body; 10] {
    [
        thinking(message_id, "Hm, ", None),
        thinking(message_id, "so.", Some("se")),
        thinking(message_id, "", Some("al")),
        text(message_id, 2, "Grö"),
        text(message_id, 2, "ße"),
        tool_start(message_id, 3, TOOL),
        tool_input(message_id, 3, "{\"a\""),
        tool_input(message_id, 3, ":1}"),
        tool_end(message_id),
        tool_start(message_id, 4, SECOND_TOOL),
    ]
}

/// The message after [`deltas`] and one more.
fn streamed() -> MessageFold {
    let mut fold = new_message();
    let last = tool_input(ID, 4, "{\"b\":2}");
    for (sub, body) in (1..).zip(deltas(ID).into_iter().chain([last])) {
        fold.apply(at(sub), time(sub), &body);
    }
    fold
}

fn content() -> Vec<ContentBlock> {
    let tool_use = |id, input| ContentBlock::ToolUse {
        id,
        name: "echo".into(),
        input,
    };
    vec![
        ContentBlock::Thinking {
            text: "Hm, so.".into(),
            signature: Some("seal".into()),
        },
        ContentBlock::text(""),
        ContentBlock::text("Größe"),
        tool_use(TOOL, json!({"a": 1})),
        tool_use(SECOND_TOOL, json!({"b": 2})),
    ]
}

// S3-057
#[test]
fn deltas_build_the_blocks_of_their_message() {
    let fold = streamed();
    assert_eq!(fold.content(), content());
    assert_eq!(fold.text_bytes(), 7 + 7);
    assert_eq!(fold.grown_bytes(), 7 + 7 + 7 + 7);
    assert_eq!(fold.open_tool_uses(), [(4, SECOND_TOOL, json!({"b": 2}))]);
    let reasoning = |signed| CutKind::Thinking {
        after_text: false,
        signed,
    };
    let expected = [
        (reasoning(false), 0, 4),
        (reasoning(true), 0, 7),
        (reasoning(true), 0, 7),
        (CutKind::Text, 2, 4),
        (CutKind::Text, 2, 7),
        (CutKind::ToolStart, 3, 0),
        (CutKind::ToolInput, 3, 4),
        (CutKind::ToolInput, 3, 7),
        (CutKind::ToolEnd, 3, 7),
        (CutKind::ToolStart, 4, 0),
        (CutKind::ToolInput, 4, 7),
    ];
    let expected = (1..)
        .zip(expected)
        .map(|(sub, (kind, block, end))| DeltaCut {
            at: at(sub),
            time: time(sub),
            kind,
            block,
            end,
        });
    let cuts: Vec<_> = fold.cuts.iter().collect();
    assert_eq!(cuts, expected.collect::<Vec<_>>());
}

#[test]
fn deltas_of_another_message_have_no_effect() {
    let mut fold = streamed();
    let before = fold.clone();
    for body in deltas(OTHER).into_iter().chain([complete(OTHER)]) {
        fold.apply(at(20), time(20), &body);
    }
    assert_eq!(fold, before);
    fold.apply(END, time(30), &complete(ID));
    let end = (END, time(30), StopReason::ToolUse, usage());
    assert_eq!(fold.completed, Some(end));
}

#[test]
fn delta_beyond_the_last_block_adds_none() {
    let mut fold = new_message();
    fold.apply(at(1), time(1), &text(ID, BLOCKS_MAX, "x"));
    assert_eq!(fold.blocks, []);
    fold.apply(at(2), time(2), &text(ID, BLOCKS_MAX - 1, "x"));
    assert_eq!(fold.blocks.len(), BLOCKS_MAX as usize);
    assert_eq!(fold.text_bytes(), 1);
}

//
#[test]
fn streaming_message_is_in_progress_with_its_content() {
    let message = streamed().in_progress(SessionId(Ulid(6)));
    assert_eq!(message.status, MessageStatus::InProgress);
    assert_eq!(message.content, content());
}

/// The row of the finished message, as a database returns it.
fn stored() -> StoredMessage {
    let fold = streamed();
    let row = fold.finished(&fold.complete(StopReason::ToolUse, usage()));
    assert_eq!(
        row.inputs,
        [(3, "{\"a\":1}".into()), (4, "{\"b\":2}".into())]
    );
    let message = Message {
        status: row.status,
        content: row.content,
        stop_reason: Some(row.stop_reason),
        usage: Some(row.usage),
        ..fold.in_progress_without_content(SessionId(Ulid(6)))
    };
    StoredMessage {
        response_id: None,
        message,
        started: row.started,
        completed: Some((END, time(30))),
        cuts: row.cuts,
        inputs: row.inputs,
    }
}

#[test]
fn stored_message_is_read_back_whole() {
    let mut expected = streamed();
    // A skipped block is stored as an empty text.
    expected.blocks[1] = BlockFold::Text(String::new());
    // A tool use that the provider did not end has its input, parsed, when it is stored.
    expected.blocks[4] = BlockFold::Tool(
        SECOND_TOOL,
        "echo".into(),
        "{\"b\":2}".into(),
        Some(json!({"b": 2})),
    );
    expected.completed = Some((END, time(30), StopReason::ToolUse, usage()));
    assert_eq!(MessageFold::from_stored(&stored()), Some(expected));
}

#[test]
fn message_that_did_not_stream_has_no_fold() {
    let streaming = StoredMessage {
        completed: None,
        ..stored()
    };
    let at_once = StoredMessage {
        completed: Some((START, time(0))),
        ..stored()
    };
    let mut of_user = stored();
    of_user.message.role = Role::User;
    for stored in [streaming, at_once, of_user] {
        assert_eq!(MessageFold::from_stored(&stored), None);
    }
}

#[test]
fn stop_reason_decides_the_status_of_a_finished_message() {
    let fold = streamed();
    let status = |reason| fold.finished(&fold.complete(reason, usage())).status;
    assert_eq!(status(StopReason::EndTurn), MessageStatus::Complete);
    assert_eq!(status(StopReason::MaxTokens), MessageStatus::Complete);
    assert_eq!(status(StopReason::Cancelled), MessageStatus::Cancelled);
    assert_eq!(status(StopReason::Error), MessageStatus::Failed);
}
