//! The frames of one turn on the chat wire, with assertions that hold for every turn.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::TurnId;
use turnwire_testkit::chat::Block;

use crate::chat;

/// All frames of one turn on the chat wire.
#[derive(Debug)]
pub struct ChatReply {
    pub turn: TurnId,
    pub frames: Vec<Block>,
    /// From submit to the last frame.
    pub elapsed: Duration,
}

impl ChatReply {
    /// The frame types with the names of their tools; repetitions are removed.
    pub fn labels(&self) -> Vec<String> {
        let mut labels: Vec<String> = self.frames.iter().map(label).collect();
        labels.dedup();
        labels
    }

    /// Asserts that the labels contain `wanted` in this order.
    pub fn assert_order(&self, wanted: &[&str]) {
        let labels = self.labels();
        let mut remaining = labels.iter();
        for one in wanted {
            assert!(
                remaining.any(|label| label == one),
                "{one} is missing or out of order: {labels:?}"
            );
        }
    }

    /// The frames of a type.
    pub fn of<'a>(&'a self, event: &'a str) -> impl Iterator<Item = &'a Block> {
        self.frames
            .iter()
            .filter(move |frame| frame.event() == event)
    }

    /// How many frames of a type there are.
    pub fn count(&self, event: &str) -> usize {
        self.of(event).count()
    }

    /// Asserts that no collection was shown, and that every placeholder was removed.
    pub fn assert_no_data(&self, case: &str) {
        let ids = |event| -> Vec<_> { self.of(event).map(|f| &f.field("data")["id"]).collect() };
        assert_eq!(ids("data_loading"), ids("data_loaded"), "{case}");
        for frame in self.of("data_loaded") {
            let data = frame.field("data");
            assert_eq!(data["items"], serde_json::json!([]), "{case}: {data}");
        }
    }

    /// The text of the answer.
    pub fn text(&self) -> String {
        chat::words(&self.frames)
    }

    /// The `error` and `is_final` fields of all error frames.
    pub fn errors(&self) -> Vec<(Value, Value)> {
        let both = |f: &Block| (f.field("error").clone(), f.field("is_final").clone());
        self.of("error").map(both).collect()
    }

    /// The ids and texts of all status frames.
    pub fn statuses(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let both = |f: &Block| {
            let data = f.field("data");
            (text(&data["event_id"]), text(&data["message"]))
        };
        self.of("status").map(both).collect()
    }

    /// The last frame of the turn.
    pub fn last(&self) -> &Block {
        self.frames.last().expect("a frame")
    }

    /// The text of all frames as received.
    pub fn raw(&self) -> String {
        self.frames
            .iter()
            .map(|frame| frame.text.as_str())
            .collect()
    }

    /// Asserts that none of `words` is on the wire.
    pub fn assert_absent(&self, words: &[&str]) {
        let raw = self.raw();
        for word in words {
            assert!(!raw.contains(word), "{word} is on the wire:\n{raw}");
        }
    }

    /// Asserts that the text has no error code, host or path, and that only the last frame is final.
    pub fn assert_valid_answer(&self) {
        let words = self.text();
        assert!(!words.trim().is_empty(), "{:?}", self.labels());
        for word in [
            "_ERROR",
            "FAILED",
            "FAN_OUT",
            "upstream",
            "error_class",
            "127.0.0.1",
            "::",
            "/v1/",
        ] {
            assert!(!words.contains(word), "{word} in {words:?}");
        }
        self.assert_tools_paired();
        let (last, before) = self.frames.split_last().expect("frames");
        assert!(
            before.iter().all(|f| f.field("is_final") != &json!(true)),
            "s1_097"
        );
        for frame in self.of("error") {
            let fields = frame.field("error").as_object().expect("an object");
            let allowed = ["code", "sub_agent_id", "enricher_id", "reason", "failed"];
            assert!(
                fields.keys().all(|key| allowed.contains(&key.as_str())),
                "s1_093: {}",
                frame.text
            );
        }
        if last.event() == "error" {
            assert_eq!(last.field("is_final"), &json!(true));
            assert_eq!(self.count("completed"), 0);
        }
    }

    /// Asserts that every started tool ended once, before the last frame.
    pub fn assert_tools_paired(&self) {
        let calls = |event| {
            let mut calls: Vec<String> = self
                .of(event)
                .map(|f| f.field("tool_call").to_string())
                .collect();
            calls.sort();
            calls
        };
        assert_eq!(
            calls("tool_call"),
            calls("tool_completed"),
            "{:?}",
            self.labels()
        );
        assert!(self.last().is_terminal());
        assert_eq!(self.frames.iter().filter(|f| f.is_terminal()).count(), 1);
    }
}

/// A frame's type with the name of its tool.
pub fn label(frame: &Block) -> String {
    match frame.field("tool_call")["name"].as_str() {
        Some(tool) => format!("{} {tool}", frame.event()),
        None => frame.event().to_owned(),
    }
}
