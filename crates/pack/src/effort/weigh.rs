//! Whether a schema can be used at all, whatever it is to check.

use super::part::{Index, Part};
use super::{Heavy, Steps};

/// Parts of a schema, each as often as it applies to one value: more than any that people write,
/// and a few milliseconds.
pub(super) const PARTS_MAX: u64 = 20_000;
/// Parts inside each other that apply to one value: a check nests as deep as they do.
const NESTED_MAX: usize = 64;
/// How often a part is taken where what is left over is asked for.
pub(super) const AGAIN: u64 = 4;

/// Fails with the part at which a schema is too much for one value.
pub(super) fn weigh(parts: &[Part], pointers: &[String]) -> Result<(), Heavy> {
    let mut scale = Scale::new(parts, pointers);
    let mut known = vec![false; parts.len()];
    let mut into = vec![0];
    while let Some(at) = into.pop() {
        if std::mem::replace(&mut known[at], true) {
            continue;
        }
        scale.part(at, 1, &mut into)?;
    }
    Ok(())
}

struct Scale<'a> {
    parts: &'a [Part],
    pointers: &'a [String],
    left: Steps,
    /// Parts that are being weighed, each inside the one before.
    above: Vec<Index>,
    /// Which have told what applies to what is in a value: once, however often they apply.
    entered: Vec<bool>,
}

impl<'a> Scale<'a> {
    fn new(parts: &'a [Part], pointers: &'a [String]) -> Self {
        Self {
            parts,
            pointers,
            left: Steps(PARTS_MAX),
            above: Vec::new(),
            entered: vec![false; parts.len()],
        }
    }

    /// Weighs a part with all that applies to the same value; what applies to what is in it is
    /// put into `into`.
    fn part(&mut self, at: Index, weight: u64, into: &mut Vec<Index>) -> Result<(), Heavy> {
        let (part, pointer) = (&self.parts[at], &self.pointers[at]);
        if self.above.contains(&at) {
            let what = "a `$ref` leads back to where it stands without going into the data";
            return Err(Heavy::new(what, pointer));
        }
        if self.above.len() == NESTED_MAX {
            let what = format!("more than {NESTED_MAX} of its parts stand inside each other");
            return Err(Heavy::new(what, pointer));
        }
        let patterns = part.by_pattern.iter().map(|(pattern, _)| pattern);
        let patterns = patterns.chain(&part.pattern).map(|pattern| pattern.work);
        let patterns = patterns.fold(0, u64::saturating_add);
        self.left.spend(weight.saturating_add(patterns)).map_err(|_| {
            let what = format!(
                "it is more than {PARTS_MAX} steps for one value, with references followed and repeats written out"
            );
            Heavy::new(what, pointer)
        })?;
        self.above.push(at);
        let weight = weight_inside(part, weight);
        for &below in &part.here {
            self.part(below, weight, into)?;
        }
        for &below in &part.tried {
            self.part(below, weight.saturating_add(1), into)?;
        }
        self.above.pop();
        if !std::mem::replace(&mut self.entered[at], true) {
            into.extend(part.into());
        }
        Ok(())
    }
}

/// What those weigh that a part is made of.
pub(super) fn weight_inside(part: &Part, weight: u64) -> u64 {
    match part.again {
        true => weight.saturating_mul(AGAIN),
        false => weight,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::effort::part::parts;

    #[test]
    fn what_is_in_a_part_is_entered_once_however_often_the_part_applies() {
        let fields: serde_json::Map<String, Value> =
            (0..500).map(|at| (at.to_string(), json!({}))).collect();
        let mut defs =
            serde_json::Map::from_iter([("d0".to_owned(), json!({"properties": fields}))]);
        for at in 1..=10 {
            let before = json!({"$ref": format!("#/$defs/d{}", at - 1)});
            defs.insert(format!("d{at}"), json!({"allOf": [before, before]}));
        }
        let schema = json!({"$ref": "#/$defs/d10", "$defs": defs});
        let (parts, pointers) = parts(&schema).expect("parts");
        let mut into = Vec::new();
        let mut scale = Scale::new(&parts, &pointers);
        assert_eq!(scale.part(0, 1, &mut into), Ok(()));
        assert_eq!(into.len(), 500);
    }
}
