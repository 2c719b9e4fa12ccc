//! Scripts for the scripted model, written as code: rules that hear what the user says, and the
//! steps they answer with. The file is JSON, which is YAML too.

use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The tools that come with the server, for trying.
pub mod tool {
    /// Tells the time.
    pub const CLOCK: &str = "clock";
    /// Gives back its `text`.
    pub const ECHO: &str = "echo";
    /// Takes `ms`.
    pub const SLEEP: &str = "sleep";
    /// Fails.
    pub const FAIL: &str = "fail";
    /// Emits `count` pairs of events.
    pub const BURST: &str = "burst";
}

/// A script: the first rule that hears the user speaks.
#[derive(Clone, Debug, Default)]
pub struct ModelScript {
    rules: Vec<Value>,
}

impl ModelScript {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more rule: what it hears (a regex on the user's words), and what it says.
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

    /// One more rule: what an agent says in the n-th of its calls, from 1.
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

    /// One more rule: what an agent says in the n-th of its calls when it hears `user`.
    #[must_use]
    pub fn heard(
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

    /// The script that is built in, for trying without a pack.
    pub fn builtin() -> &'static str {
        include_str!("../../model/scripts/default.yaml")
    }

    /// Its text.
    pub fn text(&self) -> String {
        Value::from(self.rules.clone()).to_string()
    }

    /// Writes it to a file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        std::fs::write(path, self.text())
    }
}

/// One step of an answer.
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

    /// Words.
    pub fn text(text: &str) -> Self {
        Self::of("text", text)
    }

    /// Words in deltas of `chunk` characters with `delay_ms` before each.
    pub fn slow(text: &str, chunk: usize, delay_ms: u64) -> Self {
        Self::text(text)
            .with("chunk", chunk)
            .with("delay_ms", delay_ms)
    }

    /// The same words so many times.
    #[must_use]
    pub fn repeat(self, times: u64) -> Self {
        self.with("repeat", times)
    }

    /// Reasoning with its seal.
    pub fn thinking(text: &str, signature: &str) -> Self {
        Self::of("thinking", text).with("signature", signature)
    }

    /// A tool; adjacent ones run at once, and words after it are the next call's.
    pub fn tool(name: &str, input: Value) -> Self {
        Self::of("tool", json!({"name": name, "input": input}))
    }

    /// A tool whose input comes in `fragments` pieces with `delay_ms` before each.
    pub fn slow_tool(name: &str, input: Value, fragments: u64, delay_ms: u64) -> Self {
        let tool =
            json!({"name": name, "input": input, "fragments": fragments, "delay_ms": delay_ms});
        Self::of("tool", tool)
    }

    /// Silence for a while.
    pub fn pause(ms: u64) -> Self {
        Self::of("pause_ms", ms)
    }

    /// Silence for ever.
    pub fn stall() -> Self {
        Self::of("stall", true)
    }

    /// The call breaks.
    pub fn error(class: &str) -> Self {
        Self::of("error", class)
    }

    /// The call ends, and says what it cost.
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
