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

    /// The fields of a file that the schema refuses. An unknown key is reported, and then read as the
    /// key that was probably meant, or else removed: so it hides no other mistake, and is not
    /// reported as missing too.
    fn errors(&self, node: &mut Located<YamlNode>) -> Vec<FieldError> {
        let is_unknown = |error: &FieldError| error.severity == Severity::UnknownKey;
        let mut errors = self.refused(node);
        errors.retain(is_unknown);
        for error in &errors {
            if let Some((key, meant)) = &error.unknown_key {
                replace_key(node, &error.pointer, key, meant.as_deref());
            }
        }
        let others = self.refused(node).into_iter();
        errors.extend(others.filter(|error| !is_unknown(error)));
        errors
    }

    fn refused(&self, node: &Located<YamlNode>) -> Vec<FieldError> {
        let schema = SubSchema::root(&self.schema);
        let instance = schema.instance(node);
        let errors = self.validator.iter_errors(&instance);
        errors
            .flat_map(|error| field_errors(node, schema, &error))
            .collect()
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
    let mut node = match yaml::parse(text) {
        Ok(node) => node,
        Err(error) => {
            let position = error.position.unwrap_or_default();
            report(findings, file, (position, error.message, error.instead));
            return None;
        }
    };
    if node.value == YamlNode::Null && is_blank(text) {
        let message = "the file is empty".to_owned();
        report(findings, file, (TextPosition::TOP, message, None));
        return None;
    }
    let errors = T::schema().errors(&mut node);
    for error in &errors {
        let words = (error.message.clone(), error.instead.clone());
        report(findings, file, (error.position, words.0, words.1));
        if matches!(error.severity, Severity::Blank | Severity::Bounds) {
            blank(&mut node, &error.pointer);
        }
    }
    let is_removed = |error: &FieldError| matches!(error.unknown_key, Some((_, None)));
    if errors.iter().any(is_removed) {
        findings.mark_removed_key();
    }
    if has_wrong_shape(&errors) {
        return None;
    }
    match yaml::from_node(&node) {
        Ok(read) => Some(read),
        Err(error) => {
            let position = error.position.unwrap_or_default();
            report(findings, file, (position, error.message, error.instead));
            None
        }
    }
}

fn report(
    findings: &mut Findings,
    file: &str,
    (position, message, instead): (TextPosition, String, Option<String>),
) {
    findings.error(file, position, message, instead.unwrap_or_default());
}

/// True if a file has nothing but comments.
fn is_blank(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.all(|line| line.is_empty() || line == "---" || line.starts_with('#'))
}

/// Takes the value at a JSON pointer out of a file.
fn blank(node: &mut Located<YamlNode>, pointer: &str) {
    if let Some(target) = at_pointer(node, pointer) {
        target.value = YamlNode::Null;
    }
}

/// Renames a key of the map at a JSON pointer to `meant`; removes the key if nothing is meant, or if
/// the map has what is meant.
fn replace_key(node: &mut Located<YamlNode>, pointer: &str, key: &str, meant: Option<&str>) {
    let Some(YamlNode::Map(pairs)) = at_pointer(node, pointer).map(|node| &mut node.value) else {
        return;
    };
    let meant = meant.filter(|meant| !pairs.iter().any(|(key, _)| key.value == *meant));
    match meant {
        Some(meant) => {
            let mut keys = pairs.iter_mut().map(|(key, _)| key);
            if let Some(unknown) = keys.find(|unknown| unknown.value == key) {
                meant.clone_into(&mut unknown.value);
            }
        }
        None => pairs.retain(|(unknown, _)| unknown.value != key),
    }
}

/// The value at a JSON pointer.
fn at_pointer<'n>(
    node: &'n mut Located<YamlNode>,
    pointer: &str,
) -> Option<&'n mut Located<YamlNode>> {
    let mut target = node;
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        target = match &mut target.value {
            YamlNode::Map(pairs) => pairs
                .iter_mut()
                .find(|(key, _)| key.value == step)
                .map(|(_, value)| value)?,
            YamlNode::List(items) => items.get_mut(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(target)
}
