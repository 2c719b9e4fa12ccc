//! The cost of one input: the steps of its check, counted before it.

use serde_json::{Map, Value};

use super::graph::{PartIndex, SchemaGraph, SchemaPart};
use super::weight::times;

/// Steps of a check: about a tenth of a second. An input of 64 KiB and a schema that people write
/// take a tenth of it.
const STEPS_MAX: u64 = 2_000_000;
/// Parts of the schema and of the input inside each other: a check nests as deep as they do.
const DEPTH_MAX: usize = 256;

/// The steps that checking `input` can take; `None` if they are too many.
pub(super) fn steps(graph: &SchemaGraph, input: &Value) -> Option<u64> {
    let mut counter = StepCounter {
        parts: &graph.parts,
        steps: 0,
        depth: 0,
    };
    counter.part(0, input, 1)?;
    Some(counter.steps)
}

struct StepCounter<'g> {
    parts: &'g [SchemaPart],
    steps: u64,
    depth: usize,
}

/// `None` above a limit.
type Counted = Option<()>;

impl StepCounter<'_> {
    fn add(&mut self, steps: u64, weight: u64) -> Counted {
        self.steps = self.steps.saturating_add(steps.saturating_mul(weight));
        (self.steps <= STEPS_MAX).then_some(())
    }

    /// Counts a part that is applied to `value` `weight` times.
    fn part(&mut self, index: PartIndex, value: &Value, weight: u64) -> Counted {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let part = &self.parts[index];
        let own = self.own(part, value)?;
        self.add(own, weight)?;
        let weight = weight.saturating_mul(times(part));
        for &same in &part.same {
            self.part(same, value, weight)?;
        }
        for &tried in &part.tried {
            self.part(tried, value, weight.saturating_add(1))?;
        }
        match value {
            Value::Object(fields) => self.fields(part, fields, weight)?,
            Value::Array(items) => self.items(part, items, weight)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        self.depth -= 1;
        Some(())
    }

    /// The steps of a part's own keywords.
    fn own(&mut self, part: &SchemaPart, value: &Value) -> Option<u64> {
        let inner = match value {
            Value::String(text) => {
                let pattern = part
                    .pattern
                    .as_ref()
                    .map_or(0, |pattern| pattern.cost(text));
                pattern.saturating_add(text.len() as u64 / 16)
            }
            Value::Array(_) | Value::Object(_) if part.compared > 0 => {
                self.size(value)?.saturating_mul(part.compared)
            }
            _ => 0,
        };
        Some(inner.saturating_add(part.entries).saturating_add(1))
    }

    /// The number of values in a value, with itself.
    fn size(&mut self, value: &Value) -> Option<u64> {
        let (mut below, mut count) = (vec![value], 0);
        while let Some(value) = below.pop() {
            self.add(1, 1)?;
            count += 1;
            match value {
                Value::Array(items) => below.extend(items),
                Value::Object(fields) => below.extend(fields.values()),
                Value::String(text) => count += text.len() as u64 / 16,
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        Some(count)
    }

    fn fields(&mut self, part: &SchemaPart, fields: &Map<String, Value>, weight: u64) -> Counted {
        for (name, value) in fields {
            let property = part.properties.get(name);
            let other = part.other_properties.iter().filter(|_| property.is_none());
            for &inner in property
                .into_iter()
                .chain(other)
                .chain(&part.all_properties)
            {
                self.part(inner, value, weight)?;
            }
            for (pattern, inner) in &part.by_pattern {
                // Once for the property, once to find the additional ones.
                self.add(2 * pattern.cost(name).saturating_add(1), weight)?;
                self.part(*inner, value, weight)?;
            }
            for &inner in &part.property_names {
                self.part(inner, &Value::from(name.as_str()), weight)?;
            }
        }
        Some(())
    }

    fn items(&mut self, part: &SchemaPart, items: &[Value], weight: u64) -> Counted {
        for (&inner, item) in part.first_items.iter().zip(items) {
            self.part(inner, item, weight)?;
        }
        for item in items {
            for &inner in &part.all_items {
                self.part(inner, item, weight)?;
            }
        }
        Some(())
    }
}
