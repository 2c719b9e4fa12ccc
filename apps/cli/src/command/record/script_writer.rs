//! Writes model calls as a script: one rule per [`CallAttempt`], selected by agent, number and
//! input, that gives the model's answer in the pieces in which it streamed.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use serde_json::{Value, json};
use turnwire_event::fold::MessageFold;
use turnwire_event::fold::cut::{CutKind, DeltaCut};
use turnwire_event::fold::input::read_input;
use turnwire_event::fold::message::BlockFold;
use turnwire_event::row::StoredMessage;
use turnwire_event::{ContentBlock, StopReason, Timestamp, TokenUsage};
use turnwire_pack::yaml;

use super::model_calls::{AttemptEnd, CallAttempt};
use crate::terminal::wording::code_name;

/// The most pieces of text in a script: its reader's limit, with room for everything else. Text in
/// a script with more is not split.
const PIECES_MAX: usize = 150_000;
/// The most bytes of text in a step, a limit of the script's reader.
const STEP_BYTES_MAX: usize = 1 << 20;
/// The most pieces of a tool's input, a limit of the script's reader.
const FRAGMENTS_MAX: usize = 1_000;
/// The longest delay before a piece, a limit of the script's reader.
const DELAY_MS_MAX: u64 = 60_000;
/// The longest pause, a limit of the script's reader.
const PAUSE_MS_MAX: u64 = 600_000;

/// The script, and a warning for each answer that it cannot contain.
pub(super) fn write(attempts: &[CallAttempt<'_>], paced: bool) -> (String, Vec<String>) {
    let messages = attempts.iter().filter_map(|attempt| attempt.message);
    let pieces = messages.map(|stored| ScriptedReply::new(stored).cuts.len());
    let style = ScriptStyle {
        paced,
        pieces: pieces.sum::<usize>() <= PIECES_MAX,
    };
    let recorded = attempts.iter();
    let recorded: Vec<(String, Vec<Value>)> = recorded
        .map(|attempt| (when(attempt, None).to_string(), steps(attempt, style)))
        .collect();
    // Inputs with more than one answer are distinguished by the turn.
    let mut first_answer = HashMap::new();
    let mut ambiguous = HashSet::new();
    for (key, steps) in &recorded {
        if first_answer.entry(key).or_insert(steps) != &steps {
            ambiguous.insert(key);
        }
    }
    let mut warnings = Vec::new();
    let mut rules: Vec<Value> = Vec::new();
    let mut written: HashMap<(&String, Option<usize>), &Vec<Value>> = HashMap::new();
    for (attempt, (key, steps)) in attempts.iter().zip(&recorded) {
        let turn = ambiguous.contains(key).then_some(attempt.input_count);
        match written.entry((key, turn)) {
            Entry::Vacant(rule) => {
                rule.insert(steps);
                rules.push(json!({"when": when(attempt, turn), "steps": steps}));
            }
            Entry::Occupied(rule) if *rule.get() == steps => {}
            Entry::Occupied(_) => warnings.push(format!(
                "call {} of {} has two answers to the same input of one turn; the script has the \
                 first",
                attempt.call, attempt.agent
            )),
        }
    }
    let text = yaml::to_string(&rules).expect("JSON can be written as YAML");
    (text, warnings)
}

#[derive(Clone, Copy)]
struct ScriptStyle {
    /// True to write the delays.
    paced: bool,
    /// True to split text into its pieces.
    pieces: bool,
}

/// The condition of the rule for an attempt.
fn when(attempt: &CallAttempt<'_>, turn: Option<usize>) -> Value {
    // A call that succeeded at once matches every attempt: a provider may fail next time.
    let is_retried = matches!(attempt.end, AttemptEnd::Failed { is_retried, .. } if is_retried);
    without_nulls(json!({
        "agent": attempt.agent,
        "call": attempt.call,
        "attempt": (attempt.attempt > 1 || is_retried).then_some(attempt.attempt),
        "says": attempt.input,
        "locale": is_tag(&attempt.locale).then_some(&attempt.locale),
        "turn": turn,
    }))
}

fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// True if a script accepts `locale` as a language tag.
fn is_tag(locale: &str) -> bool {
    let (language, _) = locale.split_once('-').unwrap_or((locale, ""));
    let is_part = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    locale.len() <= 35
        && language.len() >= 2
        && language.bytes().all(|byte| byte.is_ascii_alphabetic())
        && locale.split('-').all(is_part)
}

fn steps(attempt: &CallAttempt<'_>, style: ScriptStyle) -> Vec<Value> {
    let mut steps = Vec::new();
    if let Some(stored) = attempt.message {
        let message = ScriptedReply::new(stored);
        if style.paced {
            steps.extend(message.silence(attempt.started_at));
        }
        for block in 0..stored.message.content.len() {
            message.block(block, style, &mut steps);
        }
    }
    steps.push(match attempt.end {
        AttemptEnd::Completed(reason, usage) => json!({"stop": stop(reason), "usage": cost(usage)}),
        AttemptEnd::Failed { class, is_retried } => {
            let retry = is_retried.then_some(true);
            without_nulls(json!({"error": code_name(class), "retry": retry}))
        }
        AttemptEnd::Stalled => json!({"stall": true}),
    });
    steps
}

/// The stop reason as a script has it.
fn stop(reason: StopReason) -> String {
    match reason {
        // The server sets these; no model reports them.
        StopReason::Cancelled | StopReason::Error => code_name(StopReason::EndTurn),
        _ => code_name(reason),
    }
}

fn cost(usage: TokenUsage) -> Value {
    let mut cost = serde_json::to_value(usage).unwrap_or_default();
    if let Value::Object(fields) = &mut cost {
        fields.retain(|_, value| value.as_f64() != Some(0.0));
    }
    cost
}

/// A [`StoredMessage`], with the ends of its pieces if it streamed.
struct ScriptedReply<'s> {
    stored: &'s StoredMessage,
    cuts: Vec<DeltaCut>,
    /// The raw inputs of tools, by block.
    blocks: Vec<BlockFold>,
}

impl<'s> ScriptedReply<'s> {
    fn new(stored: &'s StoredMessage) -> Self {
        let fold = MessageFold::from_stored(stored);
        let (cuts, blocks) = fold
            .map(|fold| (fold.cuts.iter().collect(), fold.blocks))
            .unwrap_or_default();
        Self {
            stored,
            cuts,
            blocks,
        }
    }

    /// The time before the first piece, as a step.
    fn silence(&self, started_at: Timestamp) -> Option<Value> {
        let first = self.cuts.first()?.time.as_millis();
        let wait = first.saturating_sub(started_at.as_millis()).max(0);
        (wait > 0).then(|| json!({"pause_ms": wait.unsigned_abs().min(PAUSE_MS_MAX)}))
    }

    fn block(&self, at: usize, style: ScriptStyle, steps: &mut Vec<Value>) {
        match &self.stored.message.content[at] {
            ContentBlock::Text { text } => {
                for pieces in self.pieces(at, text, style) {
                    steps.push(self.step("said", pieces, at, style));
                }
            }
            ContentBlock::Thinking { text, signature } => {
                let mut all = self.pieces(at, text, style);
                if all.is_empty() && signature.is_some() {
                    all.push(Vec::new());
                }
                let last = all.len();
                for (n, pieces) in all.into_iter().enumerate() {
                    let mut step = self.step("thought", pieces, at, style);
                    if let (Some(seal), true) = (signature, n + 1 == last) {
                        step["signature"] = json!(seal);
                    }
                    steps.push(step);
                }
            }
            ContentBlock::ToolUse { name, input, .. } => {
                steps.push(self.tool(at, name, input));
            }
            // No model writes these.
            ContentBlock::ToolResult { .. }
            | ContentBlock::Component { .. }
            | ContentBlock::Data { .. } => {}
        }
    }

    fn step(&self, kind: &str, pieces: Vec<&str>, at: usize, style: ScriptStyle) -> Value {
        let delay = self.delay(at).filter(|_| style.paced);
        without_nulls(json!({kind: pieces, "delay_ms": delay}))
    }

    /// The pieces of a block, in as many steps as its length requires.
    fn pieces<'t>(&self, at: usize, text: &'t str, style: ScriptStyle) -> Vec<Vec<&'t str>> {
        let cuts = self.cuts.iter().filter(|cut| {
            cut.block as usize == at && matches!(cut.kind, CutKind::Text | CutKind::Thinking { .. })
        });
        let ends = cuts.map(|cut| cut.end as usize).filter(|_| style.pieces);
        let mut steps: Vec<Vec<&str>> = Vec::new();
        let (mut from, mut bytes) = (0, STEP_BYTES_MAX);
        for end in ends.chain([text.len()]) {
            while from < end.min(text.len()) {
                let most = text.floor_char_boundary(from + STEP_BYTES_MAX);
                let to = text.floor_char_boundary(end.min(most));
                // A cut inside a character is ignored.
                let Some(piece) = text.get(from..to).filter(|piece| !piece.is_empty()) else {
                    break;
                };
                if bytes + piece.len() > STEP_BYTES_MAX {
                    steps.push(Vec::new());
                    bytes = 0;
                }
                bytes += piece.len();
                if let Some(step) = steps.last_mut() {
                    step.push(piece);
                }
                from = to;
            }
        }
        steps
    }

    /// The mean delay between the pieces of a block.
    fn delay(&self, at: usize) -> Option<u64> {
        let times: Vec<i64> = self
            .cuts
            .iter()
            .filter(|cut| cut.block as usize == at)
            .map(|cut| cut.time.as_millis())
            .collect();
        let (first, last) = (times.first()?, times.last()?);
        let gaps = u64::try_from(times.len()).ok()?.checked_sub(1)?;
        let mean = (last - first).max(0).unsigned_abs().checked_div(gaps)?;
        (mean > 0).then_some(mean.min(DELAY_MS_MAX))
    }

    fn tool(&self, at: usize, name: &str, input: &Value) -> Value {
        let raw = match self.blocks.get(at) {
            Some(BlockFold::Tool(_, _, raw, _)) if !raw.is_empty() => Some(raw.as_str()),
            _ => None,
        };
        // An incomplete input is written as it is, and so is one that a script would fill in.
        let input = match raw {
            Some(raw) if read_input(raw).is_none() || raw.contains("{{") => json!(raw),
            _ if input.to_string().contains("{{") => json!(input.to_string()),
            _ => input.clone(),
        };
        let cuts = self.cuts.iter().filter(|cut| cut.block as usize == at);
        let fragments = cuts.filter(|cut| cut.kind == CutKind::ToolInput).count();
        let mut tool = json!({"name": name, "input": input});
        if fragments > 0 {
            tool["fragments"] = json!(fragments.min(FRAGMENTS_MAX));
        }
        json!({"tool": tool})
    }
}

#[cfg(test)]
mod tests;
