//! Checks received text against stored text (I5, law 5): the joined chunks of each model call are
//! its message. The received text may be longer only after a crash, by no more than the checkpoint
//! interval.

use std::time::Duration;

use turnwire_event::body::stream::{TextDelta, ThinkingDelta};
use turnwire_event::{Actor, Body, Event, MessageId, Position, Timestamp, Ulid};
use turnwire_wire::pc3;

use super::super::chat_violation::ChatViolation;
use super::super::record::History;
use super::super::text::CHECKPOINT_SLACK;
use super::expected::{ExpectedCall, ExpectedTurn, TextKind, append_run};
use super::streams::{ViewedFrame, ViewerStream};

/// Text as runs of one kind each.
type TextRuns = [(TextKind, String)];

/// Checks the text of one viewer.
pub(super) fn check(
    history: &History,
    viewer: &ViewerStream<'_>,
    expected: &ExpectedTurn,
    broken: &mut Vec<ChatViolation>,
) {
    let frames = viewer.frames.iter();
    let chunks: Vec<(&ViewedFrame, TextKind, &str)> = frames
        .filter(|frame| !frame.id.position.is_persisted())
        // Frames about MCP servers are transient and contain no text.
        .filter(|frame| !frame.block.event().starts_with("mcp_"))
        .filter_map(|frame| {
            let text_chunk = chunk(frame);
            if text_chunk.is_none() || !is_projection(frame, expected) {
                broken.push(ChatViolation::Changed {
                    id: frame.id.to_string(),
                    seen: frame.block.frame_text().to_owned(),
                    expected: "a frame of words".into(),
                });
            }
            text_chunk.map(|(kind, text)| (frame, expected.compared_kind(kind), text))
        })
        .collect();
    for (frame, ..) in &chunks {
        let at = frame.id.position;
        if !expected.calls.iter().any(|call| lies_in(call, at)) {
            broken.push(ChatViolation::Stray {
                id: frame.id.to_string(),
                text: frame.block.text.clone(),
            });
        }
    }
    for call in &expected.calls {
        let of_call = chunks.iter().copied();
        let of_call: Vec<_> = of_call
            .filter(|(frame, ..)| lies_in(call, frame.id.position))
            .collect();
        compare(history, viewer, expected.swept, call, &of_call, broken);
    }
}

fn lies_in(call: &ExpectedCall, at: Position) -> bool {
    call.started < at && call.ended.is_none_or(|ended| at < ended)
}

/// The kind and text of a text frame.
fn chunk(frame: &ViewedFrame) -> Option<(TextKind, &str)> {
    let (kind, field) = match frame.block.event() {
        "text" => (TextKind::Text, "chunk"),
        "reasoning" => (TextKind::Reasoning, "chunk"),
        "thinking" => (TextKind::Thinking, "content"),
        _ => return None,
    };
    let text = frame.block.field(field).as_str()?;
    Some((kind, text))
}

/// True if the frame's bytes are the projection of a delta with its text.
fn is_projection(frame: &ViewedFrame, expected: &ExpectedTurn) -> bool {
    let Some((kind, text)) = chunk(frame) else {
        return false;
    };
    let at = frame.block.field("timestamp").clone();
    let Ok(timestamp) = serde_json::from_value::<Timestamp>(at) else {
        return false;
    };
    let (message_id, content_block_index, text) = (MessageId(Ulid(0)), 0, text.to_owned());
    let body = match kind {
        TextKind::Text => Body::TextDelta(TextDelta {
            message_id,
            content_block_index,
            text,
        }),
        TextKind::Thinking | TextKind::Reasoning => Body::ThinkingDelta(ThinkingDelta {
            message_id,
            content_block_index,
            text,
            signature: None,
            after_text: kind == TextKind::Reasoning,
        }),
    };
    let event = Event {
        // No upstream can give the turn's own id.
        response_id: expected.response.parse().ok(),
        id: frame.id.position,
        session_id: expected.session,
        turn_id: Some(expected.turn),
        actor: Actor::ORCHESTRATOR,
        timestamp,
        trace: None,
        render: None,
        sub_agent_id: None,
        body,
    };
    let mut bytes = Vec::new();
    pc3::project(&event, expected.version, &mut bytes);
    frame.block.frame_text().as_bytes() == bytes
}

fn compare(
    history: &History,
    viewer: &ViewerStream<'_>,
    swept: bool,
    call: &ExpectedCall,
    chunks: &[(&ViewedFrame, TextKind, &str)],
    broken: &mut Vec<ChatViolation>,
) {
    let mut seen = Vec::new();
    for (_, kind, text) in chunks {
        append_run(&mut seen, *kind, text);
    }
    let from = viewer.from.map(|from| from.position);
    let passed = |frame: &ViewedFrame| call.ended.is_some_and(|ended| frame.id.position > ended);
    let is_complete = viewer.frames.last().is_some_and(passed);
    let matches = if from.is_some_and(|from| call.ended.is_some_and(|ended| from > ended)) {
        true
    } else if from.is_some_and(|from| from > call.started) {
        // From the middle of the call: the received text is a suffix, if the call's end arrived.
        !is_complete || swept || ends_with_runs(&call.runs, &seen)
    } else if is_complete && swept {
        starts_with_runs(&seen, &call.runs)
    } else if is_complete {
        seen == call.runs
    } else {
        starts_with_runs(&call.runs, &seen) || swept && starts_with_runs(&seen, &call.runs)
    };
    if !matches {
        broken.push(ChatViolation::Text {
            message: call.message,
            seen: format!("{seen:?}"),
            stored: format!("{:?}", call.runs),
        });
    }
    if matches && swept && from.is_none_or(|from| from < call.started) {
        check_checkpoint(history, call, chunks, broken);
    }
}

/// True if `longer` starts with `shorter`.
fn starts_with_runs(longer: &TextRuns, shorter: &TextRuns) -> bool {
    let Some(((kind, text), before)) = shorter.split_last() else {
        return true;
    };
    longer.starts_with(before)
        && longer
            .get(before.len())
            .is_some_and(|(known, stored)| known == kind && stored.starts_with(text))
}

/// True if `longer` ends with `shorter`, across runs.
fn ends_with_runs(longer: &TextRuns, shorter: &TextRuns) -> bool {
    let Some(((kind, text), after)) = shorter.split_first() else {
        return true;
    };
    let Some(at) = longer.len().checked_sub(shorter.len()) else {
        return false;
    };
    let (known, stored) = &longer[at];
    known == kind && stored.ends_with(text) && longer[at + 1..] == *after
}

/// Lost text must have been sent shortly before a kill.
fn check_checkpoint(
    history: &History,
    call: &ExpectedCall,
    chunks: &[(&ViewedFrame, TextKind, &str)],
    broken: &mut Vec<ChatViolation>,
) {
    let bytes = |runs: &TextRuns| runs.iter().map(|(_, text)| text.len()).sum::<usize>();
    let stored_bytes = bytes(&call.runs);
    let mut sent_bytes = 0;
    let ages = chunks.iter().filter_map(|(frame, _, text)| {
        sent_bytes += text.len();
        (sent_bytes > stored_bytes).then(|| history.nearest_kill(frame.at))
    });
    if let Some(age) = ages.max().filter(|age| *age > CHECKPOINT_SLACK) {
        broken.push(ChatViolation::CheckpointLate {
            message: call.message,
            ms: millis(age),
        });
    }
}

fn millis(age: Duration) -> u64 {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}
