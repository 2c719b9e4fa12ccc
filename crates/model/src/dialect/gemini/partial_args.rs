//! The arguments of a call that are streamed in parts, each at a JSON path of the argument object.
//!
//! The object is emitted when the call is complete: a part names a path, so that the text of the object
//! is not known before its end.

use serde::Deserialize;
use serde_json::{Map, Number, Value};

use crate::delta::ModelError;
use crate::dialect::DecodeResult;
use crate::dialect::lenient::OptionalStr;

/// Largest size of all arguments of a call in bytes, as in other formats.
const BYTES_MAX: usize = 1 << 20;
/// Most steps of a path: schemas of tools are far flatter.
const STEPS_MAX: usize = 32;
/// Largest index of an array: gaps are filled with `null`.
const INDEX_MAX: usize = 1_000;
/// Largest memory of the values of a call in bytes, beside their text: a short path makes up to
/// [`STEPS_MAX`] values.
const VALUES_BYTES_MAX: usize = 4 << 20;
/// What an element of an array or a field of an object counts for.
const VALUE_BYTES: usize = size_of::<Value>();
/// What an array or an object counts for: it takes memory for some elements at once.
const CONTAINER_BYTES: usize = 4 * VALUE_BYTES;

/// One part of an argument.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialArg<'a> {
    /// Where the value belongs, such as `$.items[0].name`.
    #[serde(borrow, default)]
    json_path: OptionalStr<'a>,
    /// Text; several parts of one path append.
    #[serde(borrow, default)]
    string_value: OptionalStr<'a>,
    number_value: Option<Number>,
    bool_value: Option<bool>,
}

/// The arguments of a call so far.
#[derive(Debug, Default)]
pub(super) struct PartialArgs {
    args: Value,
    bytes: usize,
    values_bytes: usize,
}

/// One step of a path.
enum PathStep {
    Field(String),
    Index(usize),
}

impl PartialArgs {
    /// The arguments that a call has whole, to which parts may be added.
    pub(super) fn of(args: Value, bytes: usize) -> Self {
        Self {
            args,
            bytes,
            values_bytes: 0,
        }
    }

    /// The arguments as an object, `{}` if there was no part.
    pub(super) fn into_json(self) -> String {
        match self.args {
            Value::Null => Value::Object(Map::new()).to_string(),
            args => args.to_string(),
        }
    }

    /// Puts a part at its path. A part without a value is `null`.
    pub(super) fn push(&mut self, part: PartialArg<'_>) -> DecodeResult {
        let text = part.string_value.0.as_deref();
        self.bytes += part.json_path.as_str().len() + text.map_or(8, str::len);
        if self.bytes > BYTES_MAX {
            return Err(ModelError::malformed());
        }
        let steps = steps(part.json_path.as_str()).ok_or_else(ModelError::malformed)?;
        let place = place(&mut self.args, steps, &mut self.values_bytes);
        let place = place.ok_or_else(ModelError::malformed)?;
        match (text, part.number_value, part.bool_value) {
            (Some(text), ..) => match place {
                Value::String(so_far) => so_far.push_str(text),
                other => *other = text.into(),
            },
            (None, Some(number), _) => *place = Value::Number(whole(number)),
            (None, None, Some(value)) => *place = value.into(),
            (None, None, None) => {}
        }
        Ok(())
    }
}

/// A double that is a whole number, as one: schemas tell `2` from `2.0`.
fn whole(number: Number) -> Number {
    let value = number.as_f64().filter(|value| value.fract() == 0.0);
    match value {
        Some(value) if value.abs() < 9.0e15 => Number::from(value as i64),
        Some(_) | None => number,
    }
}

/// The steps of a path below `$`: `.name`, `['name']`, `["name"]` and `[0]`.
fn steps(path: &str) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix('.') {
            Some(name) => {
                let end = name.find(['.', '[']).unwrap_or(name.len());
                (PathStep::Field(name[..end].to_owned()), &name[end..])
            }
            None => bracket(rest.strip_prefix('[')?)?,
        };
        steps.push(step);
        rest = after;
    }
    (!steps.is_empty() && steps.len() <= STEPS_MAX).then_some(steps)
}

/// The step in brackets, and the path after it.
fn bracket(text: &str) -> Option<(PathStep, &str)> {
    let quote = text.chars().next()?;
    if matches!(quote, '\'' | '"') {
        let (name, after) = text[1..].split_once(quote)?;
        return Some((PathStep::Field(name.to_owned()), after.strip_prefix(']')?));
    }
    let (number, after) = text.split_once(']')?;
    let index = number.parse().ok().filter(|index| *index <= INDEX_MAX)?;
    Some((PathStep::Index(index), after))
}

/// The value at a path, made if it is not there; `bytes` counts the memory of what is made. `None`
/// if the path contradicts an earlier one, or too much would be made.
fn place<'a>(
    root: &'a mut Value,
    steps: Vec<PathStep>,
    bytes: &mut usize,
) -> Option<&'a mut Value> {
    let mut value = root;
    for step in steps {
        if value.is_null() {
            *value = match step {
                PathStep::Field(_) => Value::Object(Map::new()),
                PathStep::Index(_) => Value::Array(Vec::new()),
            };
            *bytes += CONTAINER_BYTES;
        }
        value = match step {
            PathStep::Field(name) => {
                let fields = value.as_object_mut()?;
                *bytes += VALUE_BYTES * usize::from(!fields.contains_key(&name));
                fields.entry(name).or_insert(Value::Null)
            }
            PathStep::Index(index) => {
                let list = value.as_array_mut()?;
                let length = list.len().max(index + 1);
                *bytes += (length - list.len()) * VALUE_BYTES;
                if *bytes > VALUES_BYTES_MAX {
                    return None;
                }
                list.resize(length, Value::Null);
                &mut list[index]
            }
        };
        if *bytes > VALUES_BYTES_MAX {
            return None;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(parts: &[&str]) -> DecodeResult<String> {
        let mut args = PartialArgs::default();
        for part in parts {
            args.push(serde_json::from_str(part).expect("a part"))?;
        }
        Ok(args.into_json())
    }

    #[test]
    fn parts_are_put_at_their_paths() {
        let parts = [
            r#"{"jsonPath":"$.city","stringValue":"New ","willContinue":true}"#,
            r#"{"jsonPath":"$.city","stringValue":"York"}"#,
            r#"{"jsonPath":"$.days[1].n","numberValue":2.0}"#,
            r#"{"jsonPath":"$.days[0].n","numberValue":1.5}"#,
            r#"{"jsonPath":"$['un it']","nullValue":"NULL_VALUE"}"#,
            r#"{"jsonPath":"$[\"dry\"]","boolValue":true}"#,
        ];
        assert_eq!(
            assembled(&parts).as_deref(),
            Ok(r#"{"city":"New York","days":[{"n":1.5},{"n":2}],"un it":null,"dry":true}"#)
        );
        assert_eq!(assembled(&[]).as_deref(), Ok("{}"));
    }

    #[test]
    fn gaps_of_arrays_are_bounded() {
        let deep = "[1000]".repeat(3);
        let parts: Vec<_> = (0..40)
            .map(|index| format!(r#"{{"jsonPath":"$[{index}]{deep}","boolValue":true}}"#))
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        assert!(assembled(&parts[..1]).is_ok());
        assert!(assembled(&parts).is_err());
    }

    #[test]
    fn values_of_short_deep_paths_are_bounded() {
        // Each part has some 75 bytes of text and makes 32 objects.
        let parts = |count: usize| -> Vec<String> {
            let deep = ".a".repeat(STEPS_MAX - 1);
            let part = |n| format!(r#"{{"jsonPath":"$.{n}{deep}","boolValue":true}}"#);
            (0..count).map(part).collect()
        };
        let run = |parts: &[String]| {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            assembled(&parts)
        };
        assert!(run(&parts(100)).is_ok());
        let count = VALUES_BYTES_MAX / (STEPS_MAX * CONTAINER_BYTES);
        assert!(count * 100 < BYTES_MAX, "the text would end the call");
        assert!(run(&parts(count)).is_err());
    }

    #[test]
    fn path_that_is_invalid_or_contradicts_is_malformed() {
        for parts in [
            &[r#"{"jsonPath":"city","stringValue":"x"}"#][..],
            &[r#"{"jsonPath":"$","stringValue":"x"}"#],
            &[r#"{"jsonPath":"$.a[100000]","stringValue":"x"}"#],
            &[r#"{"jsonPath":"$.a[*]","stringValue":"x"}"#],
            &[
                r#"{"jsonPath":"$.a","stringValue":"x"}"#,
                r#"{"jsonPath":"$.a.b","stringValue":"x"}"#,
            ],
        ] {
            assert!(assembled(parts).is_err(), "{parts:?}");
        }
    }
}
