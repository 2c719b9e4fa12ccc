//! Whether one input can be checked: the steps of the check, counted before it.

use serde_json::{Map, Value};

use super::part::{Index, Part};
use super::weigh::weight_inside;
use super::{Spent, Steps};

/// Steps of a check: about a tenth of a second. An input of 64 KiB and a schema that people write
/// take a tenth of it.
const STEPS_MAX: u64 = 2_000_000;
/// Parts inside each other, of the schema and of the input: a check nests as deep as they do.
const NESTED_MAX: usize = 256;

/// Takes every step that checking `input` can take.
pub(super) fn walk(parts: &[Part], input: &Value) -> Result<(), Spent> {
    let mut walk = Walk {
        parts,
        left: Steps(STEPS_MAX),
        nested: 0,
    };
    walk.part(0, input, 1)
}

struct Walk<'a> {
    parts: &'a [Part],
    left: Steps,
    nested: usize,
}

impl Walk<'_> {
    fn part(&mut self, at: Index, value: &Value, weight: u64) -> Result<(), Spent> {
        if self.nested == NESTED_MAX {
            return Err(Spent);
        }
        self.nested += 1;
        let part = &self.parts[at];
        self.itself(part, value, weight)?;
        let weight = weight_inside(part, weight);
        for &below in &part.here {
            self.part(below, value, weight)?;
        }
        for &below in &part.tried {
            self.part(below, value, weight.saturating_add(1))?;
        }
        match value {
            Value::Object(fields) => self.fields(part, fields, weight)?,
            Value::Array(items) => self.items(part, items, weight)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        self.nested -= 1;
        Ok(())
    }

    /// What is looked at without going anywhere.
    fn itself(&mut self, part: &Part, value: &Value, weight: u64) -> Result<(), Spent> {
        let mut steps = part.listed.saturating_add(1);
        match value {
            Value::String(text) => {
                steps += text.len() as u64 / 16;
                if let Some(pattern) = &part.pattern {
                    steps = steps.saturating_add(pattern.cost(text));
                }
            }
            Value::Array(_) | Value::Object(_) if part.alike > 0 => {
                let whole = self.whole(value)?;
                steps = steps.saturating_add(whole.saturating_mul(part.alike));
            }
            _ => {}
        }
        self.left.spend(steps.saturating_mul(weight))
    }

    /// Values in a value, with itself.
    fn whole(&mut self, value: &Value) -> Result<u64, Spent> {
        let mut below = vec![value];
        let mut count = 0;
        while let Some(value) = below.pop() {
            self.left.spend(1)?;
            count += 1;
            match value {
                Value::Array(items) => below.extend(items),
                Value::Object(fields) => below.extend(fields.values()),
                Value::String(text) => count += text.len() as u64 / 16,
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        Ok(count)
    }

    fn fields(
        &mut self,
        part: &Part,
        fields: &Map<String, Value>,
        weight: u64,
    ) -> Result<(), Spent> {
        for (name, value) in fields {
            let known = part.fields.get(name);
            let other = part.other_fields.iter().filter(|_| known.is_none());
            for &below in known.into_iter().chain(other).chain(&part.each_field) {
                self.part(below, value, weight)?;
            }
            for (pattern, below) in &part.by_pattern {
                // Once for its own sake, once for the fields that are left.
                let cost = pattern.cost(name).saturating_add(1).saturating_mul(2);
                self.left.spend(cost.saturating_mul(weight))?;
                self.part(*below, value, weight)?;
            }
            if !part.field_names.is_empty() {
                let name = Value::String(name.clone());
                for &below in &part.field_names {
                    self.part(below, &name, weight)?;
                }
            }
        }
        Ok(())
    }

    fn items(&mut self, part: &Part, items: &[Value], weight: u64) -> Result<(), Spent> {
        for (&below, item) in part.first.iter().zip(items) {
            self.part(below, item, weight)?;
        }
        for item in items {
            for &below in &part.each_item {
                self.part(below, item, weight)?;
            }
        }
        Ok(())
    }
}
