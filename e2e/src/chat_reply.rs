//! What a turn told on the chat wire, and what holds of it whatever happened.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::TurnId;
use turnwire_testkit::chat::Block;

use crate::chat;

/// What a turn told on the chat wire.
#[derive(Debug)]
pub struct ChatReply {
    pub turn: TurnId,
    pub frames: Vec<Block>,
    /// How long it took, seen from outside.
    pub elapsed: Duration,
}

impl ChatReply {
    /// The frames with the names of their tools; neighbours alike as one.
    pub fn labels(&self) -> Vec<String> {
        let mut labels: Vec<String> = self.frames.iter().map(label).collect();
        labels.dedup();
        labels
    }

    /// The frames have these labels among them, in this order.
    pub fn assert_order(&self, wanted: &[&str]) {
        let labels = self.labels();
        let mut remaining = labels.iter();
        for one in wanted {
            assert!(
                remaining.any(|label| label == one),
                "{one} is not in its place: {labels:?}"
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

    /// The words.
    pub fn text(&self) -> String {
        chat::words(&self.frames)
    }

    /// The errors, each with whether it says that it is the last frame.
    pub fn errors(&self) -> Vec<(Value, Value)> {
        let both = |f: &Block| (f.field("error").clone(), f.field("is_final").clone());
        self.of("error").map(both).collect()
    }

    /// The statuses: what is done, and the words for it.
    pub fn statuses(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let both = |f: &Block| {
            let data = f.field("data");
            (text(&data["event_id"]), text(&data["message"]))
        };
        self.of("status").map(both).collect()
    }

    /// The last frame.
    pub fn last(&self) -> &Block {
        self.frames.last().expect("a frame")
    }

    /// Everything as it came.
    pub fn raw(&self) -> String {
        self.frames
            .iter()
            .map(|frame| frame.text.as_str())
            .collect()
    }

    /// These stand nowhere in what came.
    pub fn assert_absent(&self, words: &[&str]) {
        let raw = self.raw();
        for word in words {
            assert!(!raw.contains(word), "{word} is on the wire:\n{raw}");
        }
    }

    /// No code, class, host or path in the words, and only the last frame says that it is last.
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

    /// Every tool that began has ended, before the last frame and once.
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

/// A frame's type, with the name of its tool.
pub fn label(frame: &Block) -> String {
    match frame.field("tool_call")["name"].as_str() {
        Some(tool) => format!("{} {tool}", frame.event()),
        None => frame.event().to_owned(),
    }
}
