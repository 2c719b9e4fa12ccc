//! OpenAI Responses as bytes: named events with a `sequence_number` each, items that are added,
//! grow and are done, and the whole response once more in the last event. There is no `[DONE]`.

use serde_json::{Map, Value, json};

use super::dialect::Dialect;
use super::error::ProviderError;
use super::frame::{FrameBlock, SseFrame, arrange};
use super::message::{FinishReason, MessagePart, ModelMessage, TokenCounts};
use super::render_request::RenderRequest;

/// The frames of a message.
pub(crate) fn frames(message: &ModelMessage, request: &RenderRequest) -> Vec<SseFrame> {
    let items: Vec<OutputItem> = message
        .parts
        .iter()
        .enumerate()
        .map(|(index, part)| OutputItem {
            index,
            part,
            request,
        })
        .collect();
    let mut events = vec![
        json!({"type": "response.created", "response": opened(message, request)}),
        json!({"type": "response.in_progress", "response": opened(message, request)}),
    ];
    let blocks = items.iter().map(OutputItem::block).collect();
    events.extend(arrange(blocks, message.order));
    let output = items.iter().map(OutputItem::done).collect();
    events.push(last(message, request, output));
    number(events, 0)
}

/// How many of the last frames are the proper end.
pub(crate) const END: usize = 1;

/// In which form an error comes inside the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorForm {
    /// The event `error` as it is documented: code and message beside the type. The other
    /// providers have one form only, and send that for each of these.
    #[default]
    Event,
    /// The event `error` with code and message inside an object, as it is often seen.
    Nested,
    /// The event `response.failed`, with the response.
    Failed,
}

/// The frame of an error in the stream, which is the `sequence`th of it.
pub(crate) fn error(
    trouble: ProviderError,
    form: ErrorForm,
    message: &ModelMessage,
    request: &RenderRequest,
    sequence: usize,
) -> SseFrame {
    let words = trouble.text(Dialect::Responses);
    let event = match form {
        ErrorForm::Event => {
            json!({"type": "error", "code": words.code, "message": words.message, "param": null})
        }
        ErrorForm::Nested => json!({"type": "error", "error": {
            "type": words.kind, "code": words.code, "message": words.message, "param": null,
        }}),
        ErrorForm::Failed => {
            let mut response = opened(message, request);
            response["status"] = json!("failed");
            response["error"] = json!({"code": words.code, "message": words.message});
            json!({"type": "response.failed", "response": response})
        }
    };
    number(vec![event], sequence).remove(0)
}

/// A frame of a kind that no client knows.
pub(crate) fn unknown(sequence: usize) -> SseFrame {
    let event = json!({"type": "response.aurora.updated", "aurora": {"strength": 3}});
    number(vec![event], sequence).remove(0)
}

/// Frames with their names and numbers; the number stands after the type, as on the wire.
fn number(events: Vec<Value>, first: usize) -> Vec<SseFrame> {
    let numbered = events.into_iter().enumerate().map(|(at, event)| {
        let Value::Object(fields) = event else {
            unreachable!("an event is an object")
        };
        let name = fields["type"].as_str().unwrap_or_default().to_owned();
        let mut all = Map::new();
        for (key, value) in fields {
            let is_type = key == "type";
            all.insert(key, value);
            if is_type {
                all.insert("sequence_number".to_owned(), json!(first + at));
            }
        }
        SseFrame::named(&name, Value::Object(all).to_string())
    });
    numbered.collect()
}

/// The response before anything was said. It repeats what was asked.
fn opened(message: &ModelMessage, request: &RenderRequest) -> Value {
    let id = message.id.clone();
    let or = |field: &str, value: Value| match &request.body[field] {
        Value::Null => value,
        given => given.clone(),
    };
    json!({
        "id": id.unwrap_or_else(|| request.id("resp_", 0)),
        "object": "response",
        "created_at": 1_794_700_000,
        "status": "in_progress",
        "background": false,
        "completed_at": null,
        "error": null,
        "incomplete_details": null,
        "instructions": request.body["instructions"],
        "max_output_tokens": request.body["max_output_tokens"],
        "max_tool_calls": null,
        "model": message.model.as_ref().unwrap_or(&request.model),
        "output": [],
        "parallel_tool_calls": or("parallel_tool_calls", json!(true)),
        "previous_response_id": null,
        "prompt_cache_key": null,
        "reasoning": or("reasoning", json!({"effort": null, "summary": null})),
        "safety_identifier": null,
        "service_tier": "auto",
        "store": or("store", json!(true)),
        "temperature": or("temperature", json!(1.0)),
        "text": or("text", json!({"format": {"type": "text"}, "verbosity": "medium"})),
        "tool_choice": or("tool_choice", json!("auto")),
        "tools": or("tools", json!([])),
        "top_logprobs": 0,
        "top_p": or("top_p", json!(1.0)),
        "truncation": "disabled",
        "usage": null,
        "user": null,
        "metadata": or("metadata", json!({})),
    })
}

fn last(message: &ModelMessage, request: &RenderRequest, output: Vec<Value>) -> Value {
    let incomplete = match &message.finish {
        FinishReason::Done
        | FinishReason::Tools
        | FinishReason::Sequence(_)
        | FinishReason::Paused => None,
        FinishReason::Length | FinishReason::Window => Some("max_output_tokens"),
        FinishReason::Refused => Some("content_filter"),
        FinishReason::Word(word) => Some(word.as_str()),
    };
    let status = if incomplete.is_none() {
        "completed"
    } else {
        "incomplete"
    };
    let mut response = opened(message, request);
    response["status"] = json!(status);
    response["service_tier"] = json!("default");
    response["output"] = json!(output);
    response["usage"] = usage(message.usage);
    match incomplete {
        None => response["completed_at"] = json!(1_794_700_001),
        Some(reason) => response["incomplete_details"] = json!({"reason": reason}),
    }
    json!({"type": format!("response.{status}"), "response": response})
}

fn usage(usage: TokenCounts) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    })
}

/// An output item: a part of the message with its place.
struct OutputItem<'a> {
    index: usize,
    part: &'a MessagePart,
    request: &'a RenderRequest,
}

impl OutputItem<'_> {
    fn id(&self) -> String {
        let prefix = match self.part {
            MessagePart::Thinking { .. } | MessagePart::Redacted { .. } => "rs_",
            MessagePart::Text { .. } => "msg_",
            MessagePart::Call { .. } => "fc_",
        };
        self.request.id(prefix, self.index)
    }

    /// The item when it is done.
    fn done(&self) -> Value {
        let id = self.id();
        match self.part {
            MessagePart::Thinking { pieces, signature } => {
                let summary = match pieces.concat() {
                    text if text.is_empty() => json!([]),
                    text => json!([{"type": "summary_text", "text": text}]),
                };
                self.reasoning(&signature.concat(), summary)
            }
            MessagePart::Redacted { data } => self.reasoning(data, json!([])),
            MessagePart::Text { pieces } => json!({
                "id": id, "type": "message", "status": "completed",
                "content": [output_text(&pieces.concat())], "role": "assistant",
            }),
            MessagePart::Call { name, pieces, .. } => json!({
                "id": id, "type": "function_call", "status": "completed",
                "arguments": pieces.concat(), "call_id": self.call_id(), "name": name,
            }),
        }
    }

    fn call_id(&self) -> String {
        let scripted_id = match self.part {
            MessagePart::Call { id, .. } => id.clone(),
            MessagePart::Thinking { .. }
            | MessagePart::Redacted { .. }
            | MessagePart::Text { .. } => None,
        };
        scripted_id.unwrap_or_else(|| self.request.id("call_", self.index))
    }

    /// A reasoning item; the sealed reasoning is only in it if it was asked for.
    fn reasoning(&self, sealed: &str, summary: Value) -> Value {
        let mut item = json!({"id": self.id(), "type": "reasoning"});
        if self.request.wants_encrypted() && !sealed.is_empty() {
            item["encrypted_content"] = json!(sealed);
        }
        item["summary"] = summary;
        item
    }

    /// All events of the item.
    fn block(&self) -> FrameBlock<Value> {
        let mut block = match self.part {
            MessagePart::Thinking { pieces, .. } if !pieces.is_empty() => self.summary(pieces),
            MessagePart::Thinking { .. } | MessagePart::Redacted { .. } => FrameBlock {
                start: vec![self.added(self.reasoning("interim", json!([])))],
                ..FrameBlock::default()
            },
            MessagePart::Text { pieces } => self.text(pieces),
            MessagePart::Call { name, pieces, .. } => self.call(name, pieces),
        };
        block.end.push(json!({
            "type": "response.output_item.done", "output_index": self.index, "item": self.done(),
        }));
        block
    }

    fn added(&self, item: Value) -> Value {
        json!({"type": "response.output_item.added", "output_index": self.index, "item": item})
    }

    /// An event about the item, with these fields after its place.
    fn event(&self, kind: &str, fields: Value) -> Value {
        let mut event = json!({
            "type": format!("response.{kind}"), "item_id": self.id(), "output_index": self.index,
        });
        let (Value::Object(whole), Value::Object(fields)) = (&mut event, fields) else {
            unreachable!("an event is an object")
        };
        whole.extend(fields);
        event
    }

    fn delta(&self, kind: &str, mut fields: Value, piece: &str) -> Value {
        fields["delta"] = json!(piece);
        if kind == "output_text.delta" {
            fields["logprobs"] = json!([]);
        }
        if self.request.wants_obfuscation() {
            fields["obfuscation"] = json!("oBfUsCaTiOnOfLeNgTh"[..16 - piece.len() % 16]);
        }
        self.event(kind, fields)
    }

    fn summary(&self, pieces: &[String]) -> FrameBlock<Value> {
        let part = |text: &str| json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
        let all = pieces.concat();
        FrameBlock {
            start: vec![
                // The sealed reasoning that comes here is not yet the one to send back.
                self.added(self.reasoning("interim", json!([]))),
                self.event("reasoning_summary_part.added", part("")),
            ],
            deltas: pieces
                .iter()
                .map(|piece| {
                    let at = json!({"summary_index": 0});
                    self.delta("reasoning_summary_text.delta", at, piece)
                })
                .collect(),
            end: vec![
                self.event(
                    "reasoning_summary_text.done",
                    json!({"summary_index": 0, "text": all}),
                ),
                self.event("reasoning_summary_part.done", part(&all)),
            ],
        }
    }

    fn text(&self, pieces: &[String]) -> FrameBlock<Value> {
        let part = |text: &str| json!({"content_index": 0, "part": output_text(text)});
        let all = pieces.concat();
        FrameBlock {
            start: vec![
                self.added(json!({
                    "id": self.id(), "type": "message", "status": "in_progress",
                    "content": [], "role": "assistant",
                })),
                self.event("content_part.added", part("")),
            ],
            deltas: pieces
                .iter()
                .map(|piece| self.delta("output_text.delta", json!({"content_index": 0}), piece))
                .collect(),
            end: vec![
                self.event(
                    "output_text.done",
                    json!({"content_index": 0, "text": all, "logprobs": []}),
                ),
                self.event("content_part.done", part(&all)),
            ],
        }
    }

    fn call(&self, name: &str, pieces: &[String]) -> FrameBlock<Value> {
        FrameBlock {
            start: vec![self.added(json!({
                "id": self.id(), "type": "function_call", "status": "in_progress",
                "arguments": "", "call_id": self.call_id(), "name": name,
            }))],
            deltas: pieces
                .iter()
                .map(|piece| self.delta("function_call_arguments.delta", json!({}), piece))
                .collect(),
            end: vec![self.event(
                "function_call_arguments.done",
                json!({"arguments": pieces.concat()}),
            )],
        }
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}
