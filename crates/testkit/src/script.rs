//! Scripts for the scripted model, built in code: rules that match the user's message or the agent,
//! each with the steps of an answer. The file is JSON, which is valid YAML.

use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The built-in test tools of the server.
pub mod tool {
    /// Returns the current time.
    pub const CLOCK: &str = "clock";
    /// Returns its input `text`.
    pub const ECHO: &str = "echo";
    /// Sleeps for `ms` milliseconds.
    pub const SLEEP: &str = "sleep";
    /// Always fails with an error.
    pub const FAIL: &str = "fail";
    /// Emits `count` pairs of events.
    pub const BURST: &str = "burst";
}

/// A script for the scripted model: the first matching rule answers a call.
#[derive(Clone, Debug, Default)]
pub struct ModelScript {
    rules: Vec<Value>,
}

impl ModelScript {
    /// A script without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule for messages that match the regex `user`.
    #[must_use]
    pub fn on(mut self, user: &str, steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        let steps: Vec<Value> = steps
            .into_iter()
            .map(|step| Value::Object(step.0))
            .collect();
        self.rules
            .push(json!({"when": {"user": user}, "steps": steps}));
        self
    }

    /// Adds a rule for the n-th model call of an agent, counted from 1.
    #[must_use]
    pub fn call(
        mut self,
        agent: &str,
        n: u32,
        steps: impl IntoIterator<Item = ScriptStep>,
    ) -> Self {
        let steps: Vec<Value> = steps
            .into_iter()
            .map(|step| Value::Object(step.0))
            .collect();
        self.rules
            .push(json!({"when": {"agent": agent, "call": n}, "steps": steps}));
        self
    }

    /// Adds a rule for the n-th model call of an agent whose message matches the regex `user`.
    #[must_use]
    pub fn on_call(
        mut self,
        agent: &str,
        user: &str,
        n: u32,
        steps: impl IntoIterator<Item = ScriptStep>,
    ) -> Self {
        let steps: Vec<Value> = steps
            .into_iter()
            .map(|step| Value::Object(step.0))
            .collect();
        let when = json!({"agent": agent, "user": user, "call": n});
        self.rules.push(json!({"when": when, "steps": steps}));
        self
    }

    /// The server's built-in script for use without a pack.
    pub fn builtin() -> &'static str {
        include_str!("../../model/scripts/default.yaml")
    }

    /// The script file's content.
    pub fn text(&self) -> String {
        Value::from(self.rules.clone()).to_string()
    }

    /// Writes the script to a file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        std::fs::write(path, self.text())
    }
}

/// One step of a scripted answer.
#[derive(Clone, Debug)]
pub struct ScriptStep(Map<String, Value>);

impl ScriptStep {
    fn of(key: &str, value: impl Into<Value>) -> Self {
        Self(Map::from_iter([(key.to_owned(), value.into())]))
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Streams a text without delays.
    pub fn text(text: &str) -> Self {
        Self::of("text", text)
    }

    /// Streams a text in deltas of `chunk` characters, with `delay_ms` before each.
    pub fn slow(text: &str, chunk: usize, delay_ms: u64) -> Self {
        Self::text(text)
            .with("chunk", chunk)
            .with("delay_ms", delay_ms)
    }

    /// Repeats the step's text `times` times.
    #[must_use]
    pub fn repeat(self, times: u64) -> Self {
        self.with("repeat", times)
    }

    /// Streams reasoning with its signature.
    pub fn thinking(text: &str, signature: &str) -> Self {
        Self::of("thinking", text).with("signature", signature)
    }

    /// Calls a tool; adjacent tools run in parallel, and later text belongs to the next model call.
    pub fn tool(name: &str, input: Value) -> Self {
        Self::of("tool", json!({"name": name, "input": input}))
    }

    /// Calls a tool whose input streams in `fragments` pieces, with `delay_ms` before each.
    pub fn slow_tool(name: &str, input: Value, fragments: u64, delay_ms: u64) -> Self {
        let tool =
            json!({"name": name, "input": input, "fragments": fragments, "delay_ms": delay_ms});
        Self::of("tool", tool)
    }

    /// Streams nothing for `ms` milliseconds.
    pub fn pause(ms: u64) -> Self {
        Self::of("pause_ms", ms)
    }

    /// Streams nothing more, and never ends.
    pub fn stall() -> Self {
        Self::of("stall", true)
    }

    /// Fails the model call with an error class.
    pub fn error(class: &str) -> Self {
        Self::of("error", class)
    }

    /// Ends the call with a stop reason and a cost.
    pub fn stop(reason: &str, cost_usd: f64) -> Self {
        let usage = json!({"input_tokens": 11, "output_tokens": 7, "cost_usd": cost_usd});
        Self::of("stop", reason).with("usage", usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_serialises_to_server_format() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("script.yaml");
        ModelScript::new()
            .on(
                "^hi",
                [
                    ScriptStep::slow("hello", 2, 5).repeat(3),
                    ScriptStep::stop("end_turn", 0.5),
                ],
            )
            .on(
                "",
                [
                    ScriptStep::tool(tool::ECHO, json!({"text": "a"})),
                    ScriptStep::stall(),
                ],
            )
            .write(&path)
            .expect("written");
        let text = std::fs::read_to_string(path).expect("readable");
        assert_eq!(
            text,
            concat!(
                r#"[{"when":{"user":"^hi"},"steps":[{"text":"hello","chunk":2,"delay_ms":5,"repeat":3},"#,
                r#"{"stop":"end_turn","usage":{"input_tokens":11,"output_tokens":7,"cost_usd":0.5}}]},"#,
                r#"{"when":{"user":""},"steps":[{"tool":{"name":"echo","input":{"text":"a"}}},{"stall":true}]}]"#
            )
        );
    }
}
