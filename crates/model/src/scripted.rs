//! The scripted provider: a real stream with real pauses that plays a [`Script`].
//!
//! [`Scripted`] needs no key and no network, stops between any two deltas when it is dropped, and
//! is fast enough for benchmarks: a call is looked up once and then played from shared memory.

mod delta_timer;
mod plan_stream;

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, once};
use serde_json::Value;
use turnwire_event::ContentBlock;

use crate::delta::{Delta, ModelError};
use crate::provider::{ModelProvider, ProviderLookup};
use crate::request::ModelRequest;
use crate::script::ModelScript;

use plan_stream::PlanStream;

/// A [`Provider`] that plays a script.
#[derive(Clone, Debug)]
pub struct ScriptedProvider {
    script: Arc<ModelScript>,
}

impl ScriptedProvider {
    /// A provider that plays `script`.
    pub fn new(script: ModelScript) -> Self {
        Self {
            script: Arc::new(script),
        }
    }
}

impl ModelProvider for ScriptedProvider {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Delta, ModelError>> {
        let script = Arc::clone(&self.script);
        let start = async move { PlanStream::new(script.plan(&request), request_bytes(&request)) };
        once(start).flatten().boxed()
    }
}

/// Prefix of the names of scripted models.
const SCHEME: &str = "scripted:";

/// Serves every model `scripted:…` with one script, and no other model.
#[derive(Clone, Debug)]
pub struct ScriptedModels {
    provider: Option<Arc<ScriptedProvider>>,
}

impl ScriptedModels {
    /// Serves every model `scripted:…` with this [`Scripted`]; `None` serves no model.
    pub fn new(scripted: Option<ScriptedProvider>) -> Self {
        Self {
            provider: scripted.map(Arc::new),
        }
    }
}

impl ProviderLookup for ScriptedModels {
    fn provider(&self, model: &str) -> Option<Arc<dyn ModelProvider>> {
        let is_served = model
            .strip_prefix(SCHEME)
            .is_some_and(|name| !name.is_empty());
        let provider = self.provider.clone().filter(|_| is_served);
        provider.map(|scripted| scripted as Arc<dyn ModelProvider>)
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
