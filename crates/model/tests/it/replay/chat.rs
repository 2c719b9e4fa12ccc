//! The conversation in the Chat Completions format of a server that expects the reasoning of calls
//! back and adds fields of its own to a call.

use serde_json::{Value, json};
use turnwire_model::VendorDialect;
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;

use crate::replay::vendor::{ToolResult, Vendor, halves, list, parse_result, string, unnamed};

pub(crate) struct Completions;

const REASONING: &str = "reasoning_content";

fn call(id: &str, city: &str) -> Value {
    let arguments = json!({"city": city}).to_string();
    let function = json!({"name": "get_weather", "arguments": arguments});
    json!({"id": id, "type": "function", "function": function})
}

fn with_signature(mut call: Value) -> Value {
    call["extra_content"] = json!({"google": {"thought_signature": "c2VhbCBjaGF0"}});
    call
}

impl Vendor for Completions {
    fn name(&self) -> &'static str {
        "openai_chat"
    }

    fn dialect(&self) -> &'static dyn VendorDialect {
        &OpenAiChatDialect
    }

    fn turns(&self) -> Vec<Value> {
        vec![
            json!({
                "role": "assistant",
                REASONING: "Two cities, so two calls.",
                "content": "I look at both: Größe 🚢…",
                "tool_calls": [with_signature(call("call_chat_a", "Köln")), call("call_chat_b", "Rome")],
            }),
            json!({
                "role": "assistant",
                REASONING: "Rome failed. Again.",
                "content": null,
                "tool_calls": [call("call_chat_c", "Rome")],
            }),
            json!({"role": "assistant", "content": "20 degrees in both."}),
        ]
    }

    fn private_data(&self) -> &'static [&'static str] {
        &["call_chat_", "Two cities", "c2VhbCBjaGF0"]
    }

    fn stream(&self, turn: &Value) -> String {
        let mut deltas = vec![json!({"role": "assistant", "content": null})];
        for field in [REASONING, "content"] {
            let text = turn[field].as_str().unwrap_or_default();
            deltas.extend(halves(text).map(|piece| json!({field: piece})));
        }
        for (index, call) in list(&turn["tool_calls"]).iter().enumerate() {
            let mut start = call.clone();
            start["index"] = index.into();
            start["function"]["arguments"] = "".into();
            deltas.push(json!({"tool_calls": [start]}));
            let arguments = call["function"]["arguments"].as_str().expect("arguments");
            deltas.extend(halves(arguments).map(
                |piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
            ));
        }
        let has_calls = !list(&turn["tool_calls"]).is_empty();
        let reason = if has_calls { "tool_calls" } else { "stop" };
        let chunk = |delta: Value, reason: Option<&str>| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
            json!({"id": "chatcmpl-1", "choices": [choice]})
        };
        let mut chunks: Vec<Value> = deltas.into_iter().map(|delta| chunk(delta, None)).collect();
        chunks.push(chunk(json!({}), Some(reason)));
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
        chunks.push(json!({"id": "chatcmpl-1", "choices": [], "usage": usage}));
        unnamed(&chunks) + "data: [DONE]\n\n"
    }

    fn turns_in(&self, body: &Value) -> Vec<Value> {
        let messages = list(&body["messages"]).iter();
        let answers = messages.filter(|message| message["role"] == "assistant");
        answers.cloned().collect()
    }

    fn results_in(&self, body: &Value) -> Vec<ToolResult> {
        let messages = list(&body["messages"]).iter();
        let results = messages.filter(|message| message["role"] == "tool");
        results
            .map(|message| {
                let (content, is_error) =
                    parse_result(message["content"].as_str().expect("a string"));
                (string(&message["tool_call_id"]), content, is_error)
            })
            .collect()
    }

    fn calls(&self, turn: &Value) -> Vec<String> {
        let calls = list(&turn["tool_calls"]).iter();
        calls.map(|call| string(&call["id"])).collect()
    }
}
