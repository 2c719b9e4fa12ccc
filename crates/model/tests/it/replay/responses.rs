//! The conversation in the format of the Responses API. Items that are not stored are sent without
//! their ids.

use serde_json::{Value, json};
use turnwire_model::VendorDialect;
use turnwire_model::dialect::openai_responses::OpenAiResponsesDialect;

use crate::replay::vendor::{ToolResult, Vendor, halves, list, named, parse_result, string};

pub(crate) struct Responses;

fn reasoning(id: &str, summary: &str, encrypted: &str) -> Value {
    let summary = match summary {
        "" => json!([]),
        text => json!([{"type": "summary_text", "text": text}]),
    };
    json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted})
}

fn call(n: &str, city: &str) -> Value {
    json!({
        "type": "function_call",
        "id": format!("fc_{n}"),
        "call_id": format!("call_resp_{n}"),
        "name": "get_weather",
        "arguments": json!({"city": city}).to_string(),
    })
}

fn message(id: &str, phase: &str, text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text}]);
    json!({
        "type": "message", "id": id, "role": "assistant", "phase": phase, "content": content,
    })
}

impl Vendor for Responses {
    fn name(&self) -> &'static str {
        "openai_responses"
    }

    fn dialect(&self) -> &'static dyn VendorDialect {
        &OpenAiResponsesDialect
    }

    fn turns(&self) -> Vec<Value> {
        vec![
            json!([
                reasoning("rs_a", "Two cities, so two calls.", "gAAA-one"),
                reasoning("rs_b", "", "gAAA-hidden"),
                message("msg_a", "commentary", "I look at both: Größe 🚢…"),
                call("a", "Köln"),
                call("b", "Rome"),
            ]),
            json!([
                reasoning("rs_c", "Rome failed. Again.", "gAAA-two"),
                call("c", "Rome")
            ]),
            json!([message("msg_b", "final_answer", "20 degrees in both.")]),
        ]
    }

    fn private_data(&self) -> &'static [&'static str] {
        &[
            "gAAA",
            "rs_a",
            "msg_a",
            "fc_a",
            "call_resp_",
            "commentary",
            "Two cities",
        ]
    }

    fn expected_turn(&self, turn: &Value) -> Value {
        let mut turn = turn.clone();
        for item in turn.as_array_mut().expect("items") {
            item.as_object_mut().expect("an item").shift_remove("id");
        }
        turn
    }

    fn stream(&self, turn: &Value) -> String {
        let response = |status: &str| json!({"id": "resp_1", "status": status, "output": []});
        let mut events = vec![json!({"type": "response.created", "response": response("queued")})];
        for (index, item) in list(turn).iter().enumerate() {
            let mut added = item.clone();
            let mut deltas = Vec::new();
            let delta = |event: &str, piece: &str| json!({"type": event, "output_index": index, "delta": piece});
            match item["type"].as_str().expect("a type") {
                "message" => {
                    added["content"] = json!([]);
                    for (n, part) in list(&item["content"]).iter().enumerate() {
                        let text = part["text"].as_str().expect("text");
                        deltas.extend(halves(text).map(|piece| {
                            let mut delta = delta("response.output_text.delta", piece);
                            delta["content_index"] = n.into();
                            delta
                        }));
                    }
                }
                "function_call" => {
                    added["arguments"] = "".into();
                    let arguments = item["arguments"].as_str().expect("arguments");
                    let event = "response.function_call_arguments.delta";
                    deltas.extend(halves(arguments).map(|piece| delta(event, piece)));
                }
                _ => {
                    added["summary"] = json!([]);
                    let event = "response.reasoning_summary_text.delta";
                    for part in list(&item["summary"]) {
                        let text = part["text"].as_str().expect("text");
                        deltas.extend(halves(text).map(|piece| delta(event, piece)));
                    }
                }
            }
            let kind = "response.output_item.added";
            events.push(json!({"type": kind, "output_index": index, "item": added}));
            events.extend(deltas);
            let kind = "response.output_item.done";
            events.push(json!({"type": kind, "output_index": index, "item": item}));
        }
        let completed = response("completed");
        events.push(json!({"type": "response.completed", "response": completed}));
        named(&events)
    }

    fn turns_in(&self, body: &Value) -> Vec<Value> {
        let is_input =
            |item: &Value| item["role"] == "user" || item["type"] == "function_call_output";
        let turns = list(&body["input"]).split(is_input);
        let turns = turns.filter(|items| !items.is_empty());
        turns.map(|items| json!(items)).collect()
    }

    fn results_in(&self, body: &Value) -> Vec<ToolResult> {
        let items = list(&body["input"]).iter();
        let results = items.filter(|item| item["type"] == "function_call_output");
        results
            .map(|item| {
                let (content, is_error) = parse_result(item["output"].as_str().expect("a string"));
                (string(&item["call_id"]), content, is_error)
            })
            .collect()
    }

    fn calls(&self, turn: &Value) -> Vec<String> {
        let calls = list(turn).iter();
        let calls = calls.filter(|item| item["type"] == "function_call");
        calls.map(|item| string(&item["call_id"])).collect()
    }
}
