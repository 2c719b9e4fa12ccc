//! The steps of a check, counted before it: of one value whatever it is, or of a given input. The
//! count takes every branch, where a check stops at the first that decides.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::keyword::target;
use super::pattern::Patterns;

/// How often a part is applied where what is left over is checked.
const UNEVALUATED_TIMES: u64 = 4;

/// The bound that a count goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepBound {
    Steps,
    /// Parts inside each other: a check nests as deep as they do.
    Depth,
    /// A `$ref` that leads back without going into the data.
    Circle,
}

/// Counts the steps of a check up to its bounds ([`StepBound`]).
pub(super) struct StepCounter<'s> {
    schema: &'s Value,
    patterns: &'s Patterns,
    steps_max: u64,
    depth_max: usize,
    steps: u64,
    /// The parts that are being applied, outermost first.
    open: Vec<&'s Map<String, Value>>,
    /// The addresses of the parts that were applied to any value.
    seen: HashSet<*const Value>,
}

type Counted = Result<(), StepBound>;

impl<'s> StepCounter<'s> {
    pub(super) fn new(
        schema: &'s Value,
        patterns: &'s Patterns,
        (steps_max, depth_max): (u64, usize),
    ) -> Self {
        Self {
            schema,
            patterns,
            steps_max,
            depth_max,
            steps: 0,
            open: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Counts a part that is applied to any value, unless a part before it applied it too.
    pub(super) fn any(&mut self, part: &'s Value) -> Counted {
        match self.seen.contains(&std::ptr::from_ref(part)) {
            true => Ok(()),
            false => self.part(part, None, 1),
        }
    }

    fn add(&mut self, steps: u64, times: u64) -> Counted {
        self.steps = self.steps.saturating_add(steps.saturating_mul(times));
        match self.steps > self.steps_max {
            true => Err(StepBound::Steps),
            false => Ok(()),
        }
    }

    /// Counts a part that is applied `times` to `input`; `None` is any value, without what is
    /// inside it.
    pub(super) fn part(&mut self, part: &'s Value, input: Option<&Value>, times: u64) -> Counted {
        let Value::Object(keywords) = part else {
            return self.add(1, times);
        };
        if input.is_none() && self.open.iter().any(|open| std::ptr::eq(*open, keywords)) {
            return Err(StepBound::Circle);
        }
        if input.is_none() {
            self.seen.insert(part);
        }
        if self.open.len() == self.depth_max {
            return Err(StepBound::Depth);
        }
        self.open.push(keywords);
        let own = input.map_or(0, |input| self.own(keywords, input));
        self.add(own.saturating_add(1), times)?;
        let is_left_over = |key: &str| keywords.contains_key(key);
        let times = match is_left_over("unevaluatedProperties") || is_left_over("unevaluatedItems")
        {
            true => times.saturating_mul(UNEVALUATED_TIMES),
            false => times,
        };
        for (keyword, below) in keywords {
            match (keyword.as_str(), below) {
                ("$ref", Value::String(reference)) => {
                    // Looking the part up takes longer than applying it.
                    self.add(4, times)?;
                    let target = target(self.schema, reference).unwrap_or(&Value::Null);
                    self.part(target, input, times)?;
                }
                ("allOf" | "then" | "else", _) => self.each(below, input, times)?,
                // Applied once more to explain why the value does not fit.
                ("anyOf" | "oneOf" | "not" | "if", _) => {
                    self.each(below, input, times.saturating_add(1))?;
                }
                ("dependentSchemas" | "dependencies", Value::Object(parts)) => {
                    for part in parts.values() {
                        self.part(part, input, times)?;
                    }
                }
                (keyword, below) => match input {
                    Some(Value::Object(fields)) => {
                        self.fields(keywords, (keyword, below), fields, times)?;
                    }
                    Some(Value::Array(items)) => self.items(keyword, below, items, times)?,
                    _ => {}
                },
            }
        }
        self.open.pop();
        Ok(())
    }

    /// Counts one part, or each of a list of parts.
    fn each(&mut self, parts: &'s Value, input: Option<&Value>, times: u64) -> Counted {
        let list = parts
            .as_array()
            .map_or(std::slice::from_ref(parts), Vec::as_slice);
        list.iter()
            .try_for_each(|part| self.part(part, input, times))
    }

    /// The steps of a part's own keywords.
    fn own(&self, keywords: &Map<String, Value>, input: &Value) -> u64 {
        let length = |key: &str| match keywords.get(key) {
            Some(Value::Array(items)) => items.len() as u64,
            Some(Value::Object(pairs)) => pairs.len() as u64,
            _ => 0,
        };
        let lists = [
            "enum",
            "required",
            "properties",
            "type",
            "dependentRequired",
        ];
        let compared = ["const", "uniqueItems"]
            .iter()
            .filter(|key| keywords.contains_key(**key));
        let inner = match (input, keywords.get("pattern")) {
            (Value::String(text), Some(Value::String(pattern))) => self
                .patterns
                .cost(pattern, text)
                .saturating_add(size(input)),
            // Compared as a whole.
            _ => size(input).saturating_mul(length("enum").max(compared.count() as u64)),
        };
        lists
            .into_iter()
            .map(length)
            .fold(inner, u64::saturating_add)
    }

    fn fields(
        &mut self,
        keywords: &'s Map<String, Value>,
        (keyword, below): (&str, &'s Value),
        fields: &Map<String, Value>,
        times: u64,
    ) -> Counted {
        let listed = keywords.get("properties");
        let is_listed = |name: &str| listed.is_some_and(|listed| listed.get(name).is_some());
        for (name, field) in fields {
            match keyword {
                "properties" => {
                    if let Some(part) = below.get(name) {
                        self.part(part, Some(field), times)?;
                    }
                }
                "patternProperties" => {
                    for (pattern, part) in below.as_object().into_iter().flatten() {
                        // Once for the property, once to find the additional ones.
                        let tried = self.patterns.cost(pattern, name).saturating_add(1);
                        self.add(2 * tried, times)?;
                        self.part(part, Some(field), times)?;
                    }
                }
                "additionalProperties" if is_listed(name) => {}
                "additionalProperties" | "unevaluatedProperties" => {
                    self.part(below, Some(field), times)?;
                }
                "propertyNames" => self.part(below, Some(&name.as_str().into()), times)?,
                _ => break,
            }
        }
        Ok(())
    }

    fn items(&mut self, keyword: &str, below: &'s Value, items: &[Value], times: u64) -> Counted {
        match (keyword, below) {
            ("items" | "prefixItems", Value::Array(parts)) => {
                let mut pairs = parts.iter().zip(items);
                pairs.try_for_each(|(part, item)| self.part(part, Some(item), times))
            }
            ("items" | "additionalItems" | "contains" | "unevaluatedItems", _) => {
                let mut items = items.iter();
                items.try_for_each(|item| self.part(below, Some(item), times))
            }
            _ => Ok(()),
        }
    }
}

/// The number of values in a value, with itself; a text counts by its length.
fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(fields) => 1 + fields.values().map(size).sum::<u64>(),
        Value::String(text) => 1 + text.len() as u64 / 16,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
