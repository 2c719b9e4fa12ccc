//! A schema's refusal of a field in words: what is wrong there and what to write instead.

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::Value;

use super::instance::SubSchema;
use crate::source::form::{ID_PATTERN, ID_RULE, NOT_BLANK};
use crate::text::wording::{closest_name, one_line, quoted_list};
use crate::yaml::{Located, TextPosition, YamlNode, unexpected_kind, unknown_field};

/// How much of a file can still be used beside a refused field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    /// A key that is not known: all but that key.
    UnknownKey,
    /// A kind of value that hides what was meant: nothing of the file.
    RenderShape,
    /// A number or a truth value that cannot be read: all but that value.
    Blank,
    /// A whole number that is out of bounds and may not fit its type: all but that value.
    Bounds,
    /// A value that is malformed or missing: everything.
    Value,
}

/// A field that its schema refuses, as a [`ValidationError`] in words.
#[derive(Debug)]
pub(super) struct FieldError {
    pub(super) severity: Severity,
    pub(super) position: TextPosition,
    pub(super) message: String,
    pub(super) instead: Option<String>,
    /// The JSON pointer of the value, or of the map that has an unknown key.
    pub(super) pointer: String,
    /// The unknown key, and the key that was probably meant.
    pub(super) unknown_key: Option<(String, Option<String>)>,
}

/// The value that an error is about, and what the schema says of it.
struct FieldTarget<'n, 's> {
    /// The key of the value, or of the list that it is in.
    name: &'n str,
    /// True if the value is an entry of a list.
    is_item: bool,
    node: &'n Located<YamlNode>,
    schema: SubSchema<'s>,
}

impl<'n, 's> FieldTarget<'n, 's> {
    fn new(
        root: &'n Located<YamlNode>,
        schema: SubSchema<'s>,
        error: &ValidationError<'_>,
    ) -> Self {
        let mut target = Self {
            name: "",
            is_item: false,
            node: root,
            schema,
        };
        for step in error.instance_path().segments() {
            let step = step.to_string();
            let schema = target.schema.step(&target.node.value, &step);
            let name = target
                .node
                .value
                .get(&step)
                .map(|(key, _)| key.value.as_str());
            let Some(node) = target.node.step(&step) else {
                break;
            };
            target = Self {
                name: name.unwrap_or(target.name),
                is_item: name.is_none(),
                node,
                schema,
            };
        }
        target
    }

    fn property(&self, name: &str) -> SubSchema<'s> {
        self.schema.step(&self.node.value, name)
    }

    /// The word for the value in messages.
    fn noun(&self) -> String {
        match self.is_item {
            true => format!("entry of `{}`", self.name),
            false => self.name.to_owned(),
        }
    }

    /// The sentence about a blank text or an empty list, and what to write.
    fn empty(&self) -> (String, Option<String>) {
        match self.is_item {
            true => (
                format!("an entry of `{}` is empty", self.name),
                Some("a text, or no entry".to_owned()),
            ),
            false => {
                let (_, instead) = missing(self.name, self.schema);
                (format!("`{}` is empty", self.name), instead)
            }
        }
    }
}

/// What `error` says about `root`, a file that `schema` is applied to.
pub(super) fn field_errors(
    root: &Located<YamlNode>,
    schema: SubSchema<'_>,
    error: &ValidationError<'_>,
) -> Vec<FieldError> {
    use ValidationErrorKind as K;
    if let Some(branch) = branch(error) {
        let errors = branch.iter();
        return errors
            .flat_map(|error| field_errors(root, schema, error))
            .collect();
    }
    let target = FieldTarget::new(root, schema, error);
    let position = target.node.position;
    let pointer = error.instance_path().as_str();
    let field_error =
        |severity, position, (message, instead): (String, Option<String>)| FieldError {
            severity,
            position,
            message,
            instead,
            pointer: pointer.to_owned(),
            unknown_key: None,
        };
    let value = |words| vec![field_error(Severity::Value, position, words)];
    match error.kind() {
        K::AdditionalProperties { unexpected } => {
            let allowed = allowed(target.schema.of(&target.node.value).part);
            let keys = unexpected.iter();
            let keys = keys.filter_map(|key| Some(&target.node.value.get(key)?.0));
            let stray = |key: &Located<String>| {
                let words = unknown_field(&key.value, &allowed);
                let meant = closest_name(&key.value, allowed.iter().copied());
                FieldError {
                    unknown_key: Some((key.value.clone(), meant.map(str::to_owned))),
                    ..field_error(Severity::UnknownKey, key.position, words)
                }
            };
            keys.map(stray).collect()
        }
        K::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            let position = match pointer {
                "" => TextPosition::TOP,
                _ => position,
            };
            let words = missing(property, target.property(property));
            vec![field_error(Severity::Value, position, words)]
        }
        K::PropertyNames { error: inner } => {
            let name = inner.instance().as_str().unwrap_or_default();
            let key = target.node.value.get(name).map(|(key, _)| key.position);
            let names = &target.schema.of(&target.node.value).part["propertyNames"];
            let words = malformed(name, &format!("name in `{}`", target.name), names);
            vec![field_error(Severity::Value, key.unwrap_or(position), words)]
        }
        K::Pattern { .. } => {
            let text = error.instance().as_str().unwrap_or_default();
            match target.schema.part["pattern"] == NOT_BLANK {
                true => value(target.empty()),
                false => value(malformed(text, &target.noun(), target.schema.part)),
            }
        }
        K::Minimum { .. } | K::Maximum { .. } => {
            let message = format!("`{}` is {}", target.name, error.instance());
            let words = (message, range(target.schema.part));
            let severity = match target.schema.kinds().contains(&"integer") {
                true => Severity::Bounds,
                false => Severity::Value,
            };
            vec![field_error(severity, position, words)]
        }
        K::Constant { .. } | K::Enum { .. } => {
            let word = error.instance().as_str().unwrap_or_default();
            value(unknown_word(word, target.name, &target.schema.choices()))
        }
        K::MinItems { .. } => value(target.empty()),
        K::MaxItems { limit } | K::MaxProperties { limit } => {
            let first_extra = target.node.nth(*limit as usize);
            let message = format!("`{}` has more than {limit} entries", target.name);
            let words = (message, Some("fewer".to_owned()));
            let position = first_extra.unwrap_or(position);
            vec![field_error(Severity::Value, position, words)]
        }
        K::MaxLength { limit } => {
            let message = format!("the {} has more than {limit} characters", target.noun());
            value((message, Some("less".to_owned())))
        }
        K::Not { .. } | K::FalseSchema => {
            let message = description(target.schema.part).unwrap_or_default();
            value((message, Some(format!("no `{}` here", target.name))))
        }
        K::Type { .. } | K::AnyOf { .. } | K::OneOfNotValid { .. } => {
            let mut kinds = target.schema.kinds();
            kinds.retain(|kind| *kind != "null");
            let severity = match kinds[..] {
                ["integer" | "boolean"] => Severity::Blank,
                _ => Severity::RenderShape,
            };
            let words = wrong_kind(&kinds, target.schema.part);
            vec![field_error(severity, position, words)]
        }
        _ => value((format!("this does not fit: {}", error.masked()), None)),
    }
}

/// The errors of the choice that is meant for values of this kind: the first that does not refuse
/// the kind.
fn branch<'e>(error: &'e ValidationError<'_>) -> Option<&'e [ValidationError<'static>]> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return None;
    };
    let refuses_kind = |inner: &ValidationError<'_>| {
        matches!(inner.kind(), ValidationErrorKind::Type { .. })
            && inner.instance_path() == error.instance_path()
    };
    let mut choices = context.iter();
    let choice = choices.find(|errors| !errors.iter().any(refuses_kind));
    choice.map(Vec::as_slice)
}

/// The keys that may be written: those that are known only to be refused are left out.
fn allowed(schema: &Value) -> Vec<&str> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let allowed = properties.filter(|(_, schema)| schema["not"].is_null());
    allowed.map(|(key, _)| key.as_str()).collect()
}

/// The description of a part, on one line and without the full stop.
fn description(schema: &Value) -> Option<String> {
    let text = schema["description"].as_str()?;
    let text = text.trim_end_matches('.').replace('\n', " ");
    let mut chars = text.chars();
    let first = chars.next()?;
    let is_word = chars.clone().next().is_none_or(|next| !next.is_uppercase());
    Some(match is_word {
        true => first.to_lowercase().chain(chars).collect(),
        false => text,
    })
}

fn missing(name: &str, schema: SubSchema<'_>) -> (String, Option<String>) {
    let instead = match schema.choices()[..] {
        [] => match description(schema.part) {
            Some(text) => format!("`{name}: …` ({text})"),
            None => format!("`{name}: …`"),
        },
        [only] => format!("`{name}: {only}`"),
        ref choices => {
            let choices = quoted_list(choices.iter().copied());
            format!("`{name}: …` with one of {choices}")
        }
    };
    (format!("`{name}` is missing"), Some(instead))
}

fn unknown_word(word: &str, name: &str, choices: &[&str]) -> (String, Option<String>) {
    let message = format!("unknown {name} `{}`", one_line(word));
    if let Some(suggestion) = closest_name(word, choices.iter().copied()) {
        return (format!("{message}, did you mean `{suggestion}`?"), None);
    }
    let instead = match choices {
        [only] => format!("`{name}: {only}`"),
        _ => format!("one of {}", quoted_list(choices.iter().copied())),
    };
    (message, Some(instead))
}

/// Text that does not have the form that `schema` wants.
fn malformed(text: &str, noun: &str, schema: &Value) -> (String, Option<String>) {
    let noun = schema["title"].as_str().unwrap_or(noun);
    let message = format!("`{}` is not a valid {noun}", one_line(text));
    let rule = match schema["pattern"].as_str() {
        Some(ID_PATTERN) => Some(ID_RULE.to_owned()),
        _ => description(schema),
    };
    let instead = match (repaired(text, schema), rule) {
        (Some(repaired), Some(rule)) => Some(format!("`{repaired}` ({rule})")),
        (Some(repaired), None) => Some(format!("`{repaired}`")),
        (None, rule) => rule,
    };
    (message, instead)
}

/// The text that was probably meant: in lower case, `_` between words, with the prefix that the
/// pattern begins with.
fn repaired(text: &str, schema: &Value) -> Option<String> {
    let pattern = schema["pattern"].as_str()?;
    let pattern = Some(pattern).filter(|pattern| pattern.contains("[a-z0-9_]"))?;
    let validator = jsonschema::validator_for(schema).ok()?;
    let prefix = pattern.trim_start_matches('^').split('[').next()?;
    let lower = text.trim().to_ascii_lowercase();
    let clean = lower.replace(['-', ' ', '.'], "_");
    let stem = clean.strip_prefix(prefix).unwrap_or(&clean);
    let candidates = [clean.clone(), format!("{prefix}{stem}")];
    let mut candidates = candidates.into_iter();
    candidates.find(|text| validator.is_valid(&Value::from(text.as_str())))
}

/// The bounds of a number.
fn range(schema: &Value) -> Option<String> {
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, Value::Null) => None,
        (least, Value::Null) => Some(format!("a number from {least}")),
        (Value::Null, most) => Some(format!("a number up to {most}")),
        (least, most) => Some(format!("a number from {least} to {most}")),
    }
}

/// A value of another kind than those that are wanted.
fn wrong_kind(kinds: &[&str], schema: &Value) -> (String, Option<String>) {
    match kinds {
        ["integer"] => {
            let (message, example) = unexpected_kind("integer");
            (message, range(schema).or(example))
        }
        [kind] => unexpected_kind(kind),
        kinds => {
            let nouns: Vec<String> = kinds
                .iter()
                .map(|kind| match *kind {
                    "boolean" => "true, false".to_owned(),
                    kind => unexpected_kind(kind).0.replace("this should be ", ""),
                })
                .collect();
            (format!("this should be {}", nouns.join(" or ")), None)
        }
    }
}
