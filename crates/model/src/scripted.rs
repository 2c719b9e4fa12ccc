//! The scripted provider: a real stream with real pauses that plays a [`ModelScript`].
//!
//! [`ScriptedProvider`] needs no key and no network, stops between any two deltas when it is
//! dropped, and is fast enough for benchmarks: a call is looked up once and then played from shared
//! memory.

mod delta_timer;
mod plan_stream;

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::once;
use serde_json::Value;
use turnwire_event::ContentBlock;

use crate::provider::{DeltaStream, ModelProvider};
use crate::request::ModelRequest;
use crate::script::ModelScript;
use crate::script::pace::ScriptPace;

use plan_stream::PlanStream;

/// A [`ModelProvider`] that plays a script.
#[derive(Clone, Debug)]
pub struct ScriptedProvider {
    script: Arc<ModelScript>,
    /// The pauses of every call.
    pace: ScriptPace,
}

impl ScriptedProvider {
    /// A provider that plays `script` without the pauses of its `pace`: for tests and benchmarks.
    pub fn new(script: ModelScript) -> Self {
        Self {
            script: Arc::new(script),
            pace: ScriptPace::default(),
        }
    }

    /// Plays the script with the pauses of its `pace`, in percent of them.
    #[must_use]
    pub fn paced(self, percent: u32) -> Self {
        let pace = self.script.pace().scaled(percent);
        Self { pace, ..self }
    }
}

impl ModelProvider for ScriptedProvider {
    fn stream(&self, request: ModelRequest) -> DeltaStream {
        let (script, pace) = (Arc::clone(&self.script), self.pace);
        let start =
            async move { PlanStream::new(script.plan(&request), request_bytes(&request), pace) };
        once(start).flatten().boxed()
    }
}

/// Size of a request's content in bytes, for the token estimate.
fn request_bytes(request: &ModelRequest) -> u64 {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let content_bytes: usize = blocks.map(block_bytes).sum();
    (content_bytes + request.system.as_ref().map_or(0, String::len)) as u64
}

fn block_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => text.len(),
        ContentBlock::ToolUse { name, input, .. } => name.len() + json_bytes(input),
        ContentBlock::ToolResult { content, .. } => json_bytes(content),
        ContentBlock::Component { component, .. } => json_bytes(component),
        ContentBlock::Data { key, items, .. } => json_bytes(key) + json_bytes(items),
    }
}

/// Approximate size of the JSON of `value` in bytes, without writing it.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| json_bytes(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, item)| key.len() + json_bytes(item) + 4);
            2 + fields.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests;
