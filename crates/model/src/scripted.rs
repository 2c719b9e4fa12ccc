//! The scripted provider: a real stream with real pauses that says what a script tells it to.
//!
//! It needs no key and no network, stops between any two deltas when it is dropped, and is fast
//! enough to drive benchmarks: a call is looked up once and then played from shared memory.

mod pace;
mod play;

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, once};
use serde_json::Value;
use turnwire_event::ContentBlock;

use crate::delta::{Delta, ModelError};
use crate::provider::{Models, Provider};
use crate::request::Request;
use crate::script::Script;

use play::Play;

/// A model that plays a script.
#[derive(Clone, Debug)]
pub struct Scripted {
    script: Arc<Script>,
}

impl Scripted {
    /// A model that plays `script`.
    pub fn new(script: Script) -> Self {
        Self {
            script: Arc::new(script),
        }
    }
}

impl Provider for Scripted {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Delta, ModelError>> {
        let script = Arc::clone(&self.script);
        let start = async move { Play::new(script.reel(&request), asked(&request)) };
        once(start).flatten().boxed()
    }
}

/// What a scripted model's name begins with.
const SCHEME: &str = "scripted:";

/// Every model called `scripted:…` plays one script; nothing else is served.
#[derive(Clone, Debug)]
pub struct ScriptedModels {
    provider: Option<Arc<Scripted>>,
}

impl ScriptedModels {
    /// Models that play what `scripted` plays; none at all without it.
    pub fn new(scripted: Option<Scripted>) -> Self {
        Self {
            provider: scripted.map(Arc::new),
        }
    }
}

impl Models for ScriptedModels {
    fn provider(&self, model: &str) -> Option<Arc<dyn Provider>> {
        let served = model
            .strip_prefix(SCHEME)
            .is_some_and(|name| !name.is_empty());
        let provider = self.provider.clone().filter(|_| served);
        provider.map(|scripted| scripted as Arc<dyn Provider>)
    }
}

/// Bytes a request shows the model.
fn asked(request: &Request) -> u64 {
    let blocks = request.messages.iter().flat_map(|said| &said.content);
    let said: usize = blocks.map(weight).sum();
    (said + request.system.as_ref().map_or(0, String::len)) as u64
}

fn weight(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => text.len(),
        ContentBlock::ToolUse { name, input, .. } => name.len() + size(input),
        ContentBlock::ToolResult { content, .. } => size(content),
        ContentBlock::Component { component, .. } => size(component),
        ContentBlock::Data { key, items, .. } => size(key) + size(items),
    }
}

/// About as many bytes as the JSON of `value` has, without writing it.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| size(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, item)| key.len() + size(item) + 4);
            2 + fields.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests;
