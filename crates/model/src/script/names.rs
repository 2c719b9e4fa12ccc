//! Names in a script that refer to a pack: agents, tools that are called, and tools whose results
//! are used. The owner of the pack can check that they exist.

use serde_json::Value;
use turnwire_pack::yaml::{Located, TextPosition};

use super::placeholder;
use super::source::{ConditionSource, ScriptRuleSource, StepSource};

/// What a name in a script refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// An agent in a condition.
    Agent,
    /// A tool that a step calls.
    Tool,
    /// A tool whose result a placeholder or a condition uses.
    Result,
}

/// A name in a script, with its location and its [`ReferenceKind`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptReference {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// Number of the column, from 1.
    pub column: u64,
    /// The agent that the rule or step is for; `None` for any agent.
    pub agent: Option<String>,
    /// What the name refers to.
    pub kind: ReferenceKind,
    /// The name as written.
    pub name: String,
}

/// All names in a [`ScriptRuleSource`].
pub(crate) fn in_rule(file: &str, rule: &ScriptRuleSource) -> Vec<ScriptReference> {
    let mut collector = NameCollector {
        file,
        agent: None,
        names: Vec::new(),
    };
    if let Some(when) = &rule.when {
        collector.add_condition(when);
    }
    let rule_agent = collector.agent.clone();
    for step in rule.steps.iter().flat_map(|steps| &steps.value) {
        collector.agent.clone_from(&rule_agent);
        collector.add_step(&step.value);
    }
    collector.names
}

struct NameCollector<'f> {
    file: &'f str,
    /// Agent of the current rule or step.
    agent: Option<String>,
    names: Vec<ScriptReference>,
}

impl NameCollector<'_> {
    fn add(&mut self, kind: ReferenceKind, name: &str, location: TextPosition) {
        self.names.push(ScriptReference {
            file: self.file.to_owned(),
            line: location.line,
            column: location.column,
            agent: self.agent.clone(),
            kind,
            name: name.to_owned(),
        });
    }

    fn add_condition(&mut self, when: &ConditionSource) {
        if let Some(agent) = &when.agent {
            self.add(ReferenceKind::Agent, &agent.value, agent.position);
            self.agent = Some(agent.value.clone());
        }
        for tool in [&when.answered, &when.failed].into_iter().flatten() {
            self.add(ReferenceKind::Result, &tool.value, tool.position);
        }
        for (tool, pattern) in when.results.iter().flatten() {
            self.add(ReferenceKind::Result, tool, pattern.position);
        }
    }

    fn add_step(&mut self, step: &StepSource) {
        if let Some(when) = &step.when {
            self.add_condition(&when.value);
        }
        let translations = step.texts.iter().flat_map(|texts| &texts.value.0);
        let texts = [&step.text, &step.thinking].into_iter().flatten();
        for text in texts.chain(translations.map(|(_, text)| text)) {
            self.add_results(&text.value, text.position);
        }
        if let Some(Located { value: tool, .. }) = &step.tool {
            self.add(ReferenceKind::Tool, &tool.name.value, tool.name.position);
            if let Some(input) = &tool.input {
                self.add_input(&input.value, input.position);
            }
        }
    }

    fn add_input(&mut self, value: &Value, location: TextPosition) {
        match value {
            Value::String(text) => self.add_results(text, location),
            Value::Array(items) => items.iter().for_each(|item| self.add_input(item, location)),
            Value::Object(fields) => fields
                .values()
                .for_each(|item| self.add_input(item, location)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add_results(&mut self, text: &str, location: TextPosition) {
        for tool in placeholder::result_tools(text) {
            self.add(ReferenceKind::Result, tool, location);
        }
    }
}
