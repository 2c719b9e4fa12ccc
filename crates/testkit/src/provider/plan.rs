//! Turns an answer into socket operations: frames are rendered, edited, encoded, cut and paced.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{AnswerFaults, AnswerKind, CutPoint, EditKind, FrameEdit, ProviderAnswer};
use super::dialect::Dialect;
use super::error::{ErrorResponse, ProviderError, google};
use super::frame::{SseFrame, google_json};
use super::message::{MessagePart, ModelMessage};
use super::render_request::RenderRequest;
use super::{anthropic, chat, gemini, responses};

#[derive(Clone, Debug)]
pub(crate) enum SocketStep {
    /// Send these bytes as one chunk.
    Write(Bytes),
    Pause(Duration),
    /// Wait until the test releases the answer.
    Hold,
    /// Send these bytes repeatedly until the caller leaves.
    Repeat(Bytes),
}

/// How the answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    /// A proper end of the HTTP message; the connection stays open.
    Proper,
    Cut,
    /// The connection is reset.
    Reset,
}

/// The socket operations of one answer.
#[derive(Clone, Debug)]
pub(crate) struct AnswerPlan {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) before: Vec<SocketStep>,
    pub(crate) steps: Vec<SocketStep>,
    pub(crate) end: AnswerEnd,
}

impl AnswerPlan {
    /// The operations of an answer in a format.
    pub(crate) fn new(answer: &ProviderAnswer, dialect: Dialect, request: &RenderRequest) -> Self {
        let faults = &answer.faults;
        let mut before = vec![SocketStep::Pause(faults.head_delay)];
        if faults.head_stall {
            before.push(SocketStep::Hold);
        }
        let (status, mut headers, steps, end) = match &answer.kind {
            AnswerKind::Refusal { trouble, wait } => {
                let refusal = ErrorResponse::new(*trouble, dialect, None, *wait);
                return Self::refusal(refusal, answer, before);
            }
            AnswerKind::Page { status, body } => {
                let mut headers = vec![header("content-type", "text/html")];
                headers.push(header("content-length", &body.len().to_string()));
                let steps = vec![SocketStep::Write(Bytes::from(body.clone()))];
                (*status, headers, steps, AnswerEnd::Proper)
            }
            AnswerKind::Raw(bytes) => {
                let mut writes = split(bytes);
                let end = apply_cut(&mut writes, faults);
                let delta = writes.len() / 2;
                let steps = pace(writes, faults, delta);
                (200, stream_headers(dialect), steps, end)
            }
            AnswerKind::Message(message) => {
                let mut writes = writes(message, faults, dialect, request);
                let end = apply_cut(&mut writes, faults);
                let delta = first_text(message, &writes);
                let steps = pace(writes, faults, delta);
                (200, stream_headers(dialect), steps, end)
            }
        };
        headers.extend(answer.headers.iter().cloned());
        Self {
            status,
            headers,
            before,
            steps,
            end,
        }
    }

    /// The operations of an error response.
    pub(crate) fn refusal(
        refusal: ErrorResponse,
        answer: &ProviderAnswer,
        before: Vec<SocketStep>,
    ) -> Self {
        let mut headers = vec![header("content-type", "application/json")];
        headers.push(header("content-length", &refusal.body.len().to_string()));
        headers.extend(refusal.headers);
        headers.extend(answer.headers.iter().cloned());
        Self {
            status: refusal.status,
            headers,
            before,
            steps: vec![SocketStep::Write(Bytes::from(refusal.body))],
            end: AnswerEnd::Proper,
        }
    }

    /// All bytes of the body, without stalls.
    pub(crate) fn body(&self) -> Vec<u8> {
        let writes = self.steps.iter().filter_map(|step| match step {
            SocketStep::Write(bytes) => Some(bytes.as_ref()),
            SocketStep::Pause(_) | SocketStep::Hold | SocketStep::Repeat(_) => None,
        });
        writes.collect::<Vec<&[u8]>>().concat()
    }
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn stream_headers(dialect: Dialect) -> Vec<(String, String)> {
    let list: &[(&str, &str)] = match dialect {
        Dialect::Anthropic => &[
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            ("request-id", "req_011f4ke"),
        ],
        Dialect::Chat | Dialect::Responses => &[
            ("content-type", "text/event-stream; charset=utf-8"),
            ("openai-version", "2020-10-01"),
            ("x-request-id", "req_0f4ke"),
        ],
        Dialect::Gemini => &[
            ("content-type", "text/event-stream"),
            ("content-disposition", "attachment"),
        ],
    };
    list.iter()
        .map(|(name, value)| header(name, value))
        .collect()
}

/// A message's frames as bytes, edited.
fn writes(
    message: &ModelMessage,
    faults: &AnswerFaults,
    dialect: Dialect,
    request: &RenderRequest,
) -> Vec<Vec<u8>> {
    let mut frames = match dialect {
        Dialect::Anthropic => anthropic::frames(message, request),
        Dialect::Chat => chat::frames(message, request),
        Dialect::Responses => responses::frames(message, request),
        Dialect::Gemini => gemini::frames(message, request),
    };
    if faults.unknown_fields {
        frames
            .iter_mut()
            .for_each(|frame| add_unknown_fields(frame, dialect));
    }
    if faults.no_end {
        let end = match dialect {
            Dialect::Anthropic => anthropic::END,
            Dialect::Chat => chat::end(request),
            Dialect::Responses => responses::END,
            Dialect::Gemini => {
                gemini::without_end(&mut frames);
                0
            }
        };
        frames.truncate(frames.len() - end);
    }
    for edit in &faults.edits {
        apply(*edit, &mut frames, message, dialect, request);
    }
    let end = faults.line_end.map_or(dialect.line_end(), |end| end.text());
    frames
        .iter()
        .map(|frame| encode(frame, end, faults))
        .collect()
}

fn encode(frame: &SseFrame, end: &str, faults: &AnswerFaults) -> Vec<u8> {
    let text = frame.encode(end);
    if !faults.comments {
        return text.into_bytes();
    }
    let text = text.replacen("data:", &format!(":inside{end}data:"), 1);
    format!(": before{end}:{end}{text}:between{end}{end}").into_bytes()
}

fn apply(
    edit: FrameEdit,
    frames: &mut Vec<SseFrame>,
    message: &ModelMessage,
    dialect: Dialect,
    request: &RenderRequest,
) {
    let at = edit.at.min(frames.len());
    let unknown = || match dialect {
        Dialect::Anthropic => anthropic::unknown(),
        Dialect::Chat => chat::unknown(),
        Dialect::Responses => responses::unknown(at),
        Dialect::Gemini => gemini::unknown(),
    };
    match edit.kind {
        EditKind::Error(trouble, form) => {
            frames.truncate(at);
            frames.push(match dialect {
                Dialect::Anthropic => anthropic::error(trouble),
                Dialect::Chat => chat::error(trouble),
                Dialect::Responses => responses::error(trouble, form, message, request, at),
                Dialect::Gemini => gemini::error(&google_error(trouble)),
            });
        }
        EditKind::Malformed => {
            if let Some(frame) = frames.get_mut(at) {
                let half = frame.data.chars().count() / 2;
                frame.data = frame.data.chars().take(half).collect();
            }
        }
        EditKind::Unknown => frames.insert(at, unknown()),
        EditKind::Huge(bytes) => {
            let mut frame = unknown();
            let mut data: Value = serde_json::from_str(&frame.data).unwrap_or_default();
            data["huge"] = json!("x".repeat(bytes));
            frame.data = data.to_string();
            frames.insert(at, frame);
        }
    }
}

fn google_error(trouble: ProviderError) -> Value {
    let error_text = trouble.text(Dialect::Gemini);
    google(error_text, error_text.message, None)
}

/// Adds unknown fields to the objects of a frame, but not to the model's output.
fn add_unknown_fields(frame: &mut SseFrame, dialect: Dialect) {
    const INTO: [&str; 9] = [
        "/delta",
        "/message",
        "/message/usage",
        "/usage",
        "/item",
        "/response",
        "/choices/0",
        "/choices/0/delta",
        "/candidates/0",
    ];
    let Ok(mut data) = serde_json::from_str::<Value>(&frame.data) else {
        return;
    };
    data["aurora"] = json!({"strength": [3, null, "x"]});
    for place in INTO {
        if let Some(Value::Object(fields)) = data.pointer_mut(place) {
            fields.insert("aurora".to_owned(), json!("borealis"));
        }
    }
    frame.data = match dialect {
        Dialect::Anthropic | Dialect::Chat | Dialect::Responses => data.to_string(),
        Dialect::Gemini => google_json(&data),
    };
}

/// Splits recorded bytes at their blank lines.
fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut from = 0;
    for at in 1..=bytes.len() {
        let seen = &bytes[from..at];
        if seen.ends_with(b"\n\n") || seen.ends_with(b"\r\n\r\n") || seen.ends_with(b"\r\r") {
            frames.push(seen.to_vec());
            from = at;
        }
    }
    if from < bytes.len() {
        frames.push(bytes[from..].to_vec());
    }
    frames
}

/// Adds the byte order mark and applies the cut.
fn apply_cut(writes: &mut Vec<Vec<u8>>, faults: &AnswerFaults) -> AnswerEnd {
    if faults.bom {
        writes.insert(0, b"\xEF\xBB\xBF".to_vec());
    }
    let Some(cut) = faults.cut else {
        return AnswerEnd::Proper;
    };
    let keep = match cut {
        CutPoint::Bytes(bytes) => bytes,
        CutPoint::Frame(frame) => {
            let before: usize = writes.iter().take(frame).map(Vec::len).sum();
            before + writes.get(frame).map_or(0, |frame| frame.len() / 2)
        }
        CutPoint::Character => {
            let mark = if faults.bom { 3 } else { 0 };
            let bytes = writes.iter().flatten().enumerate().skip(mark);
            let first = bytes.into_iter().find(|(_, byte)| **byte >= 0xC0);
            first.map(|(at, _)| at).expect("a character of many bytes") + 1
        }
    };
    let mut budget = keep;
    for write in writes.iter_mut() {
        write.truncate(budget);
        budget -= write.len();
    }
    writes.retain(|write| !write.is_empty());
    if faults.reset {
        AnswerEnd::Reset
    } else {
        AnswerEnd::Cut
    }
}

/// The index of the frame with the first text delta; the middle one if there is no text.
fn first_text(message: &ModelMessage, writes: &[Vec<u8>]) -> usize {
    let piece = message.parts.iter().find_map(|part| match part {
        MessagePart::Text { pieces } => pieces.first(),
        MessagePart::Thinking { .. } | MessagePart::Redacted { .. } | MessagePart::Call { .. } => {
            None
        }
    });
    let piece = piece.map(|piece| json!(piece).to_string());
    let has = |write: &Vec<u8>| {
        let text = String::from_utf8_lossy(write);
        piece.as_ref().is_some_and(|piece| text.contains(piece))
    };
    writes.iter().position(has).unwrap_or(writes.len() / 2)
}

/// Adds pauses and stalls; an endless answer repeats the frame `delta`.
fn pace(writes: Vec<Vec<u8>>, faults: &AnswerFaults, delta: usize) -> Vec<SocketStep> {
    let mut steps = Vec::new();
    for (at, write) in writes.into_iter().enumerate() {
        if faults.stall_at == Some(at) {
            steps.push(SocketStep::Hold);
        }
        if at > 0 && !faults.frame_delay.is_zero() {
            steps.push(SocketStep::Pause(faults.frame_delay));
        }
        let bytes = Bytes::from(write);
        if faults.endless && at == delta {
            steps.push(SocketStep::Repeat(bytes));
            return steps;
        }
        match faults.drip {
            None => steps.push(SocketStep::Write(bytes)),
            Some(interval) => {
                for byte in 0..bytes.len() {
                    steps.push(SocketStep::Write(bytes.slice(byte..=byte)));
                    steps.push(SocketStep::Pause(interval));
                }
            }
        }
    }
    steps
}
