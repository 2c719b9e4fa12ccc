//! The conversation in the format of the Messages API. Text, reasoning and inputs are streamed in
//! two halves each.

use serde_json::{Value, json};
use turnwire_model::VendorDialect;
use turnwire_model::dialect::anthropic::AnthropicDialect;

use crate::replay::vendor::{ToolResult, Vendor, halves, list, named, string};

pub(crate) struct Messages;

fn thinking(text: &str, signature: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": signature})
}

fn call(id: &str, city: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "get_weather", "input": {"city": city}})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

impl Vendor for Messages {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn dialect(&self) -> &'static dyn VendorDialect {
        &AnthropicDialect
    }

    fn turns(&self) -> Vec<Value> {
        vec![
            json!([
                thinking("Two cities, so two calls.", "c2VhbCBvbmU="),
                {"type": "redacted_thinking", "data": "aGlkZGVu"},
                text("I look at both: Größe 🚢…"),
                call("toolu_a", "Köln"),
                call("toolu_b", "Rome"),
            ]),
            json!([
                thinking("Rome failed. Again.", "c2VhbCB0d28="),
                call("toolu_c", "Rome"),
            ]),
            json!([text("20 degrees in both.")]),
        ]
    }

    fn private_data(&self) -> &'static [&'static str] {
        &[
            "c2VhbCBvbmU=",
            "aGlkZGVu",
            "c2VhbCB0d28=",
            "toolu_",
            "Two cities",
        ]
    }

    fn stream(&self, turn: &Value) -> String {
        let message = json!({"id": "msg_1", "usage": {"input_tokens": 1, "output_tokens": 1}});
        let mut events = vec![json!({"type": "message_start", "message": message})];
        let blocks = list(turn);
        for (index, block) in blocks.iter().enumerate() {
            let mut start = block.clone();
            let mut deltas = Vec::new();
            match block["type"].as_str().expect("a type") {
                "text" => {
                    start["text"] = "".into();
                    let pieces = halves(block["text"].as_str().expect("text"));
                    deltas.extend(pieces.map(|text| json!({"type": "text_delta", "text": text})));
                }
                "thinking" => {
                    (start["thinking"], start["signature"]) = ("".into(), "".into());
                    let pieces = halves(block["thinking"].as_str().expect("text"));
                    let delta = |text| json!({"type": "thinking_delta", "thinking": text});
                    deltas.extend(pieces.map(delta));
                    let pieces = halves(block["signature"].as_str().expect("a seal"));
                    let delta =
                        |signature| json!({"type": "signature_delta", "signature": signature});
                    deltas.extend(pieces.map(delta));
                }
                "tool_use" => {
                    start["input"] = json!({});
                    let input = block["input"].to_string();
                    let delta = |part| json!({"type": "input_json_delta", "partial_json": part});
                    deltas.extend(halves(&input).map(delta));
                }
                _ => {}
            }
            let start =
                json!({"type": "content_block_start", "index": index, "content_block": start});
            events.push(start);
            let delta =
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.extend(deltas.into_iter().map(delta));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        let has_tool_use = blocks.iter().any(|block| block["type"] == "tool_use");
        let reason = if has_tool_use { "tool_use" } else { "end_turn" };
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
        events.push(json!({"type": "message_stop"}));
        named(&events)
    }

    fn turns_in(&self, body: &Value) -> Vec<Value> {
        let messages = list(&body["messages"]).iter();
        let answers = messages.filter(|message| message["role"] == "assistant");
        answers.map(|message| message["content"].clone()).collect()
    }

    fn results_in(&self, body: &Value) -> Vec<ToolResult> {
        let messages = list(&body["messages"]).iter();
        let blocks = messages.flat_map(|message| list(&message["content"]));
        let results = blocks.filter(|block| block["type"] == "tool_result");
        results
            .map(|block| {
                let content = block["content"].as_str().expect("a string");
                let content = serde_json::from_str(content).expect("JSON");
                let is_error = block["is_error"] == true;
                (string(&block["tool_use_id"]), content, is_error)
            })
            .collect()
    }

    fn calls(&self, turn: &Value) -> Vec<String> {
        let calls = list(turn)
            .iter()
            .filter(|block| block["type"] == "tool_use");
        calls.map(|block| string(&block["id"])).collect()
    }
}
