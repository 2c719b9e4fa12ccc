//! The config file: sections of keys with single values. A section or key that does not exist is
//! an error at its position, never ignored.

use std::path::Path;

use turnwire_pack::yaml::{self, Located, TextPosition, YamlNode};

use super::origin::{ConfigError, SettingOrigin};
use super::section::{SectionTable, SectionValues};

/// Reads `text`, the content of the file at `path`, into `values`.
pub(in crate::config) fn read(
    path: &Path,
    text: &str,
    tables: &'static [SectionTable],
    values: &mut SectionValues,
) -> Result<(), ConfigError> {
    let origin = |TextPosition { line, column }| SettingOrigin::File {
        path: path.to_owned(),
        line,
        column,
    };
    let error = |position, message| ConfigError::File {
        at: origin(position),
        message,
    };
    let root = yaml::parse(text).map_err(|cause| {
        let position = cause.position.unwrap_or_default();
        error(position, cause.message)
    })?;
    let sections = pairs(&root).ok_or_else(|| {
        error(
            root.position,
            "the file must have sections of keys".to_owned(),
        )
    })?;
    for (name, section) in sections {
        let table = tables.iter().find(|table| table.name == name.value);
        let table = table.ok_or_else(|| {
            let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
            error(name.position, unknown("section", &name.value, &names))
        })?;
        let keys = pairs(section).ok_or_else(|| {
            let message = format!("section {} must be `key: value` pairs", table.name);
            error(section.position, message)
        })?;
        for (name, value) in keys {
            let key = table.keys.iter().copied().find(|key| *key == name.value);
            let key = key.ok_or_else(|| {
                let noun = format!("key in section {}:", table.name);
                error(name.position, unknown(&noun, &name.value, table.keys))
            })?;
            let text = match &value.value {
                YamlNode::Null => continue,
                YamlNode::Text(text) | YamlNode::NonFinite(text) => text.clone(),
                YamlNode::Number(number, _) => number.to_string(),
                YamlNode::Bool(flag, _) => flag.to_string(),
                YamlNode::List(_) | YamlNode::Map(_) => {
                    let message = format!("{}.{key} must be a single value", table.name);
                    return Err(error(value.position, message));
                }
            };
            values.set(table.name, key, text, origin(value.position));
        }
    }
    Ok(())
}

/// The pairs of a map; nothing is an empty map.
fn pairs(node: &Located<YamlNode>) -> Option<&[(Located<String>, Located<YamlNode>)]> {
    match &node.value {
        YamlNode::Map(pairs) => Some(pairs),
        YamlNode::Null => Some(&[]),
        _ => None,
    }
}

fn unknown(noun: &str, name: &str, names: &[&str]) -> String {
    format!("unknown {noun} {name:?}; there are: {}", names.join(", "))
}
