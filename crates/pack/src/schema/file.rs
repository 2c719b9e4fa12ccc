//! One file of a pack against its schema: every field that the schema refuses, and the file as its
//! shape.

use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::PackFile;
use super::field::{FieldError, Severity, field_errors};
use super::instance::SubSchema;
use crate::finding::Findings;
use crate::yaml::{self, Located, TextPosition, YamlNode};

/// A committed schema, compiled.
#[derive(Debug)]
pub(crate) struct FileSchema {
    schema: Value,
    validator: Validator,
}

impl FileSchema {
    /// Compiles the text of a committed schema.
    pub(super) fn new(text: &str) -> Self {
        let schema = serde_json::from_str(text).expect("a committed schema is JSON");
        let validator = jsonschema::validator_for(&schema).expect("a committed schema is valid");
        Self { schema, validator }
    }

    /// The fields of a file that the schema refuses. A file with a wrong shape is reported for its
    /// shape alone: a key that is misspelt is not reported as missing too.
    fn errors(&self, node: &Located<YamlNode>) -> Vec<FieldError> {
        let schema = SubSchema::root(&self.schema);
        let instance = schema.instance(node);
        let errors = self.validator.iter_errors(&instance);
        let mut errors: Vec<FieldError> = errors
            .flat_map(|error| field_errors(node, schema, &error))
            .collect();
        if has_wrong_shape(&errors) {
            errors.retain(|error| !matches!(error.severity, Severity::Bounds | Severity::Value));
        }
        errors
    }

    #[cfg(test)]
    pub(crate) fn validator(&self) -> &Validator {
        &self.validator
    }
}

fn has_wrong_shape(errors: &[FieldError]) -> bool {
    errors
        .iter()
        .any(|error| error.severity == Severity::RenderShape)
}

/// Reads a file and reports every field that its schema refuses. `None` if the text is not YAML or
/// its shape is wrong; a number or truth value that cannot be read, or that is out of bounds, is
/// left out.
pub(crate) fn read<T: DeserializeOwned + PackFile>(
    file: &str,
    text: &str,
    findings: &mut Findings,
) -> Option<T> {
    let mut report = |position, message: String, instead: Option<String>| {
        findings.error(file, position, message, instead.unwrap_or_default());
    };
    let mut node = match yaml::parse(text) {
        Ok(node) => node,
        Err(error) => {
            let position = error.position.unwrap_or_default();
            report(position, error.message, error.instead);
            return None;
        }
    };
    if node.value == YamlNode::Null && is_blank(text) {
        report(TextPosition::TOP, "the file is empty".to_owned(), None);
        return None;
    }
    let errors = T::schema().errors(&node);
    for error in &errors {
        report(error.position, error.message.clone(), error.instead.clone());
        if matches!(error.severity, Severity::Blank | Severity::Bounds) {
            blank(&mut node, &error.pointer);
        }
    }
    if has_wrong_shape(&errors) {
        return None;
    }
    match yaml::from_node(&node) {
        Ok(read) => Some(read),
        Err(error) => {
            let position = error.position.unwrap_or_default();
            report(position, error.message, error.instead);
            None
        }
    }
}

/// True if a file has nothing but comments.
fn is_blank(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.all(|line| line.is_empty() || line == "---" || line.starts_with('#'))
}

/// Takes the value at a JSON pointer out of a file.
fn blank(node: &mut Located<YamlNode>, pointer: &str) {
    let mut target = node;
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let below = match &mut target.value {
            YamlNode::Map(pairs) => pairs
                .iter_mut()
                .find(|(key, _)| key.value == step)
                .map(|(_, value)| value),
            YamlNode::List(items) => step.parse().ok().and_then(|at: usize| items.get_mut(at)),
            _ => None,
        };
        match below {
            Some(below) => target = below,
            None => return,
        }
    }
    target.value = YamlNode::Null;
}
