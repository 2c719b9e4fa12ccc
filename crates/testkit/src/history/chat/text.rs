//! The words that came against the words that are stored (I5, law 5): of each model call the sum
//! of its chunks is its message. More only after a crash, and then by no more than the checkpoints
//! allow.

use std::time::Duration;

use turnwire_event::body::stream::{TextDelta, ThinkingDelta};
use turnwire_event::{Actor, Body, Event, MessageId, Position, Timestamp, Ulid};
use turnwire_wire::pc3;

use super::super::chat_violation::ChatViolation;
use super::super::record::History;
use super::super::text::CHECKPOINT_SLACK;
use super::expected::{ExpectedCall, ExpectedTurn, TextKind, join};
use super::streams::{ViewedFrame, ViewerStream};

/// Words in runs of one kind.
type TextRuns = [(TextKind, String)];

/// Checks the words of one reading.
pub(super) fn check(
    history: &History,
    reading: &ViewerStream<'_>,
    due: &ExpectedTurn,
    broken: &mut Vec<ChatViolation>,
) {
    let frames = reading.frames.iter();
    let chunks: Vec<(&ViewedFrame, TextKind, &str)> = frames
        .filter(|frame| !frame.id.position.is_persisted())
        // What tool servers do is told in passing, and is no word of anybody.
        .filter(|frame| !frame.block.event().starts_with("mcp_"))
        .filter_map(|frame| {
            let told = chunk(frame);
            if told.is_none() || !is_projection(frame, due) {
                broken.push(ChatViolation::Changed {
                    id: frame.id.to_string(),
                    seen: frame.block.frame_text().to_owned(),
                    due: "a frame of words".into(),
                });
            }
            told.map(|(kind, text)| (frame, kind, text))
        })
        .collect();
    for (frame, ..) in &chunks {
        let at = frame.id.position;
        if !due.calls.iter().any(|call| lies_in(call, at)) {
            broken.push(ChatViolation::Stray {
                id: frame.id.to_string(),
                text: frame.block.text.clone(),
            });
        }
    }
    for call in &due.calls {
        let of_call = chunks.iter().copied();
        let of_call: Vec<_> = of_call
            .filter(|(frame, ..)| lies_in(call, frame.id.position))
            .collect();
        compare(history, reading, due.swept, call, &of_call, broken);
    }
}

fn lies_in(call: &ExpectedCall, at: Position) -> bool {
    call.started < at && call.ended.is_none_or(|ended| at < ended)
}

/// The words of a frame.
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

/// Whether a frame of words is what the projection makes of a delta with these words.
fn is_projection(frame: &ViewedFrame, due: &ExpectedTurn) -> bool {
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
        id: frame.id.position,
        session_id: due.session,
        turn_id: Some(due.turn),
        actor: Actor::ORCHESTRATOR,
        timestamp,
        trace: None,
        render: None,
        body,
    };
    let mut bytes = Vec::new();
    pc3::project(&event, due.version, &mut bytes);
    frame.block.frame_text().as_bytes() == bytes
}

fn compare(
    history: &History,
    reading: &ViewerStream<'_>,
    swept: bool,
    call: &ExpectedCall,
    chunks: &[(&ViewedFrame, TextKind, &str)],
    broken: &mut Vec<ChatViolation>,
) {
    let mut seen = Vec::new();
    for (_, kind, text) in chunks {
        join(&mut seen, *kind, text);
    }
    let from = reading.from.map(|from| from.position);
    let passed = |frame: &ViewedFrame| call.ended.is_some_and(|ended| frame.id.position > ended);
    let whole = reading.frames.last().is_some_and(passed);
    let fits = if from.is_some_and(|from| call.ended.is_some_and(|ended| from > ended)) {
        true
    } else if from.is_some_and(|from| from > call.started) {
        // From somewhere in the middle: what came is the end, if the end came.
        !whole || swept || ends(&call.words, &seen)
    } else if whole && swept {
        begins(&seen, &call.words)
    } else if whole {
        seen == call.words
    } else {
        begins(&call.words, &seen) || swept && begins(&seen, &call.words)
    };
    if !fits {
        broken.push(ChatViolation::Text {
            message: call.message,
            seen: format!("{seen:?}"),
            whole: format!("{:?}", call.words),
        });
    }
    if fits && swept && from.is_none_or(|from| from < call.started) {
        late(history, call, chunks, broken);
    }
}

/// Whether `longer` begins with `shorter`.
fn begins(longer: &TextRuns, shorter: &TextRuns) -> bool {
    let Some(((kind, text), before)) = shorter.split_last() else {
        return true;
    };
    longer.starts_with(before)
        && longer
            .get(before.len())
            .is_some_and(|(known, whole)| known == kind && whole.starts_with(text))
}

/// Whether `longer` ends with `shorter`.
fn ends(longer: &TextRuns, shorter: &TextRuns) -> bool {
    let Some(((kind, text), after)) = shorter.split_first() else {
        return true;
    };
    let Some(at) = longer.len().checked_sub(shorter.len()) else {
        return false;
    };
    let (known, whole) = &longer[at];
    known == kind && whole.ends_with(text) && longer[at + 1..] == *after
}

/// Words that a crash cost must have been sent shortly before the kill.
fn late(
    history: &History,
    call: &ExpectedCall,
    chunks: &[(&ViewedFrame, TextKind, &str)],
    broken: &mut Vec<ChatViolation>,
) {
    let bytes = |words: &TextRuns| words.iter().map(|(_, text)| text.len()).sum::<usize>();
    let kept = bytes(&call.words);
    let mut came = 0;
    let ages = chunks.iter().filter_map(|(frame, _, text)| {
        came += text.len();
        (came > kept).then(|| history.kill_near(frame.at))
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
