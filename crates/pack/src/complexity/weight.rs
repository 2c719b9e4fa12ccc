//! The weight of a schema: the steps for one value, whatever the value is.

use super::TooComplex;
use super::graph::{PartIndex, SchemaGraph, SchemaPart};

/// Steps for one value: more than any schema that people write, and a few milliseconds.
pub(super) const STEPS_MAX: u64 = 20_000;
/// Parts inside each other that apply to one value: a check nests as deep as they do.
const DEPTH_MAX: usize = 64;
/// How often a part is applied where what is left over is checked.
const UNEVALUATED_TIMES: u64 = 4;

/// Fails with the part at which a schema takes too many steps for one value.
pub(super) fn check(graph: &SchemaGraph) -> Result<(), TooComplex> {
    let mut weights = Weights {
        graph,
        known: vec![State::New; graph.parts.len()],
        entered: vec![false; graph.parts.len()],
    };
    // Every part that a value, or something inside it, is first checked against.
    let (mut total, mut seen, mut next) = (0_u64, vec![false; graph.parts.len()], vec![0]);
    while let Some(part) = next.pop() {
        if std::mem::replace(&mut seen[part], true) {
            continue;
        }
        let weight = weights.of(part, 0)?;
        total = total.saturating_add(weight.steps(1));
        if total > STEPS_MAX {
            let message = format!(
                "it is more than {STEPS_MAX} steps for one value, with references followed and repeats written out"
            );
            return Err(TooComplex::new(message, &graph.pointers[part]));
        }
        weights.enter(part, &mut next);
    }
    Ok(())
}

/// The factor by which `part` multiplies how often the parts inside it are applied.
pub(super) fn times(part: &SchemaPart) -> u64 {
    match part.has_unevaluated {
        true => UNEVALUATED_TIMES,
        false => 1,
    }
}

/// The steps of a part with all that applies to the same value, as a function of how often the
/// part is applied.
#[derive(Clone, Copy, Debug)]
struct Weight {
    each: u64,
    once: u64,
    /// Parts inside each other, with this one.
    depth: usize,
}

impl Weight {
    fn steps(self, times: u64) -> u64 {
        self.each.saturating_mul(times).saturating_add(self.once)
    }
}

#[derive(Clone, Copy)]
enum State {
    New,
    /// The part is being measured: a reference back to it never ends.
    Open,
    Done(Weight),
}

struct Weights<'g> {
    graph: &'g SchemaGraph,
    known: Vec<State>,
    /// The parts whose inner parts are collected: once, however often they apply.
    entered: Vec<bool>,
}

impl Weights<'_> {
    /// The weight of a part that is `depth` parts deep; measured once.
    fn of(&mut self, index: PartIndex, depth: usize) -> Result<Weight, TooComplex> {
        let pointer = &self.graph.pointers[index];
        let too_deep = || {
            let message = format!("more than {DEPTH_MAX} of its parts stand inside each other");
            Err(TooComplex::new(message, pointer))
        };
        match self.known[index] {
            State::Done(weight) if depth + weight.depth > DEPTH_MAX => return too_deep(),
            State::Done(weight) => return Ok(weight),
            State::Open => {
                let message = "a `$ref` leads back to where it stands without going into the data";
                return Err(TooComplex::new(message, pointer));
            }
            State::New if depth == DEPTH_MAX => return too_deep(),
            State::New => self.known[index] = State::Open,
        }
        let part = &self.graph.parts[index];
        let patterns = part.by_pattern.iter().map(|(pattern, _)| pattern);
        let patterns = patterns.chain(&part.pattern).map(|pattern| pattern.weight);
        let mut weight = Weight {
            each: 1,
            once: patterns.fold(0, u64::saturating_add),
            depth: 1,
        };
        let tried = part.tried.iter().map(|&inner| (inner, 1));
        for (inner, extra) in part.same.iter().map(|&inner| (inner, 0)).chain(tried) {
            let inner = self.of(inner, depth + 1)?;
            let each = inner.each.saturating_mul(times(part));
            weight.each = weight.each.saturating_add(each);
            weight.once = weight.once.saturating_add(inner.steps(extra));
            weight.depth = weight.depth.max(inner.depth + 1);
        }
        self.known[index] = State::Done(weight);
        Ok(weight)
    }

    /// Collects the parts that apply inside the values that `index` applies to.
    fn enter(&mut self, index: PartIndex, next: &mut Vec<PartIndex>) {
        if std::mem::replace(&mut self.entered[index], true) {
            return;
        }
        let part = &self.graph.parts[index];
        next.extend(part.inner());
        for &same in part.same.iter().chain(&part.tried) {
            self.enter(same, next);
        }
    }
}
