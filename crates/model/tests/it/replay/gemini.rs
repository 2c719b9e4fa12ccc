//! The conversation in the format of the Gemini API. Call ids are the vendor's; without ids the
//! order of the responses identifies them.

use serde_json::{Value, json};
use turnwire_model::VendorDialect;
use turnwire_model::dialect::gemini::GeminiDialect;

use crate::replay::vendor::{ToolResult, Vendor, halves, list, unnamed};

pub(crate) struct Contents;

fn call(id: &str, city: &str) -> Value {
    json!({"name": "get_weather", "args": {"city": city}, "id": id})
}

/// The id or name of a call or its response.
fn call_key(part: &Value) -> String {
    let id = part["id"].as_str().or(part["name"].as_str());
    id.expect("a name").to_owned()
}

impl Vendor for Contents {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn dialect(&self) -> &'static dyn VendorDialect {
        &GeminiDialect
    }

    fn turns(&self) -> Vec<Value> {
        vec![
            json!([
                {"text": "Two cities, so two calls.", "thought": true},
                {"text": "I look at both: Größe 🚢…"},
                {"functionCall": call("fn_a", "Köln"), "thoughtSignature": "Z2VtIG9uZQ=="},
                {"functionCall": call("fn_b", "Rome")},
                {"toolCall": {"toolType": "GOOGLE_SEARCH", "id": "srv_a"}},
            ]),
            json!([
                {"text": "Rome failed. Again.", "thought": true, "thoughtSignature": "Z2VtIHR3bw=="},
                {"functionCall": call("fn_c", "Rome"), "thoughtSignature": "Z2VtIHRocmVl"},
            ]),
            json!([{"text": "20 degrees in both.", "thoughtSignature": "Z2VtIGZvdXI="}]),
        ]
    }

    fn private_data(&self) -> &'static [&'static str] {
        &["Z2Vt", "fn_", "srv_a", "GOOGLE_SEARCH", "Two cities"]
    }

    fn stream(&self, turn: &Value) -> String {
        let mut parts = Vec::new();
        for part in list(turn) {
            let Some(text) = part["text"].as_str() else {
                parts.push(part.clone());
                continue;
            };
            // The signature arrives with the last piece.
            let [first, last] = halves(text);
            let mut piece = part.clone();
            piece["text"] = first.into();
            piece
                .as_object_mut()
                .expect("a part")
                .shift_remove("thoughtSignature");
            parts.push(piece);
            let mut piece = part.clone();
            piece["text"] = last.into();
            parts.push(piece);
        }
        let chunk = |part: Value| {
            let content = json!({"role": "model", "parts": [part]});
            json!({"candidates": [{"index": 0, "content": content}], "responseId": "r_1"})
        };
        let mut chunks: Vec<Value> = parts.into_iter().map(chunk).collect();
        if let Some(last) = chunks.last_mut() {
            last["candidates"][0]["finishReason"] = "STOP".into();
            last["usageMetadata"] = json!({"promptTokenCount": 1, "totalTokenCount": 1});
        }
        unnamed(&chunks).replace('\n', "\r\n")
    }

    fn turns_in(&self, body: &Value) -> Vec<Value> {
        let contents = list(&body["contents"]).iter();
        let answers = contents.filter(|content| content["role"] == "model");
        answers.map(|content| content["parts"].clone()).collect()
    }

    fn results_in(&self, body: &Value) -> Vec<ToolResult> {
        let contents = list(&body["contents"]).iter();
        let parts = contents.flat_map(|content| list(&content["parts"]));
        let results = parts.filter_map(|part| part.get("functionResponse"));
        results
            .map(|response| {
                let response_content = &response["response"];
                let (content, is_error) = match response_content.get("error") {
                    Some(error) => (error.clone(), true),
                    None => (response_content["output"].clone(), false),
                };
                (call_key(response), content, is_error)
            })
            .collect()
    }

    fn calls(&self, turn: &Value) -> Vec<String> {
        let calls = list(turn).iter();
        let calls = calls.filter_map(|part| part.get("functionCall"));
        calls.map(call_key).collect()
    }
}
