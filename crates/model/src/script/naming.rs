//! What a script names outside itself: agents, tools that are called, tools whose results are
//! looked at. Whoever has the pack can tell which of them are not there.

use serde_json::Value;
use turnwire_pack::yaml::{Located, TextPosition};

use super::quote;
use super::source::{RuleSource, StepSource, ToolSource, WhenSource};

/// As what a name is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An agent that a rule or a step is for.
    Agent,
    /// A tool that is called.
    Tool,
    /// A tool whose result is quoted or waited for.
    Result,
}

/// A name in a script and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The file it is in.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// The agent that speaks there; any if none is said.
    pub agent: Option<String>,
    /// As what it is used.
    pub what: Subject,
    /// The name.
    pub name: String,
}

/// Every name in a rule.
pub(crate) fn of(file: &str, rule: &RuleSource) -> Vec<Named> {
    let mut list = List {
        file,
        agent: None,
        names: Vec::new(),
    };
    if let Some(when) = &rule.when {
        list.when(when);
    }
    let whole = list.agent.clone();
    for step in rule.steps.iter().flat_map(|steps| &steps.value) {
        list.agent.clone_from(&whole);
        list.step(&step.value);
    }
    list.names
}

struct List<'f> {
    file: &'f str,
    /// Who speaks here.
    agent: Option<String>,
    names: Vec<Named>,
}

impl List<'_> {
    fn add(&mut self, what: Subject, name: &str, at: TextPosition) {
        self.names.push(Named {
            file: self.file.to_owned(),
            line: at.line,
            column: at.column,
            agent: self.agent.clone(),
            what,
            name: name.to_owned(),
        });
    }

    fn when(&mut self, when: &WhenSource) {
        if let Some(agent) = &when.agent {
            self.add(Subject::Agent, &agent.value, agent.position);
            self.agent = Some(agent.value.clone());
        }
        for tool in [&when.answered, &when.failed].into_iter().flatten() {
            self.add(Subject::Result, &tool.value, tool.position);
        }
        for (tool, pattern) in when.results.iter().flatten() {
            self.add(Subject::Result, tool, pattern.position);
        }
    }

    fn step(&mut self, step: &StepSource) {
        if let Some(when) = &step.when {
            self.when(&when.value);
        }
        for text in [&step.text, &step.thinking].into_iter().flatten() {
            self.quoted(text);
        }
        for (_, text) in step.texts.iter().flat_map(|texts| &texts.value.0) {
            self.quoted(text);
        }
        if let Some(tool) = &step.tool {
            self.tool(&tool.value);
        }
    }

    fn tool(&mut self, tool: &ToolSource) {
        self.add(Subject::Tool, &tool.name.value, tool.name.position);
        if let Some(input) = &tool.input {
            self.input(&input.value, input.position);
        }
    }

    fn quoted(&mut self, text: &Located<String>) {
        self.results(&text.value, text.position);
    }

    fn input(&mut self, value: &Value, at: TextPosition) {
        match value {
            Value::String(text) => self.results(text, at),
            Value::Array(items) => items.iter().for_each(|item| self.input(item, at)),
            Value::Object(fields) => fields.values().for_each(|item| self.input(item, at)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn results(&mut self, text: &str, at: TextPosition) {
        for tool in quote::results(text) {
            self.add(Subject::Result, tool, at);
        }
    }
}
