//! Calls as a script: a rule for each, heard by the agent, the call and the words it was asked
//! with, which says what the model said, in the pieces it said it in.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use turnwire_event::fold::MessageFold;
use turnwire_event::fold::cut::{CutKind, DeltaCut};
use turnwire_event::fold::input::read_input;
use turnwire_event::fold::message::BlockFold;
use turnwire_event::row::StoredMessage;
use turnwire_event::{ContentBlock, StopReason, Timestamp, TokenUsage};
use turnwire_pack::yaml;

use super::model_calls::{CallEnd, RecordedCall, RetryFlag};
use crate::regression::observed;

/// Pieces of a whole script: what its reader takes, with room for everything else in it. A longer
/// one has its words whole.
const PIECES_MAX: usize = 150_000;
/// Bytes of one step's words: what a script takes.
const STEP_BYTES_MAX: usize = 1 << 20;
/// Pieces of a tool's input: what a script takes.
const FRAGMENTS_MAX: usize = 1_000;
/// The longest wait before a piece: what a script takes.
const DELAY_MS_MAX: u64 = 60_000;
/// The longest pause: what a script takes.
const PAUSE_MS_MAX: u64 = 600_000;

/// The script, and what it cannot tell.
pub(super) fn write(calls: &[RecordedCall<'_>], paced: bool) -> (String, Vec<String>) {
    let pieces: usize = calls
        .iter()
        .filter_map(|call| call.message)
        .map(deltas)
        .sum();
    let style = ScriptStyle {
        paced,
        pieces: pieces <= PIECES_MAX,
    };
    let recorded: Vec<(String, Vec<Value>)> = calls
        .iter()
        .map(|call| (key(call), steps(call, style)))
        .collect();
    // Which words are answered in more than one way: those are told apart by the turn.
    let mut ways: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, (key, steps)) in recorded.iter().enumerate() {
        let answers = ways.entry(key).or_default();
        if answers.iter().all(|other| recorded[*other].1 != *steps) {
            answers.push(at);
        }
    }
    let mut strays = Vec::new();
    let mut rules: Vec<Value> = Vec::new();
    let mut written: HashMap<(&str, Option<usize>), usize> = HashMap::new();
    for (at, (key, steps)) in recorded.iter().enumerate() {
        let call = &calls[at];
        let turn = (ways[key.as_str()].len() > 1).then_some(call.turn);
        let other = *written.entry((key, turn)).or_insert(at);
        if other == at {
            rules.push(json!({"when": when(call, turn), "steps": steps}));
        } else if recorded[other].1 != *steps {
            strays.push(format!(
                "call {} of {} was answered in two ways to the same words of one turn; the script \
                 has the first",
                call.call, call.agent
            ));
        }
    }
    let text = yaml::to_string(&rules).expect("JSON can be written as YAML");
    (text, strays)
}

#[derive(Clone, Copy)]
struct ScriptStyle {
    /// Whether the waits are told too.
    paced: bool,
    /// Whether words are told in their pieces.
    pieces: bool,
}

/// What a rule is heard by, all but the turn.
fn key(call: &RecordedCall<'_>) -> String {
    when(call, None).to_string()
}

fn when(call: &RecordedCall<'_>, turn: Option<usize>) -> Value {
    let mut when = Map::new();
    when.insert("agent".into(), json!(call.agent));
    when.insert("call".into(), json!(call.call));
    // A call that went well the first time is told whatever the try: a provider may fail anew.
    if call.attempt > 1 || matches!(call.end, CallEnd::Failed(_, RetryFlag::Yes)) {
        when.insert("attempt".into(), json!(call.attempt));
    }
    when.insert("says".into(), json!(call.says));
    if is_tag(&call.locale) {
        when.insert("locale".into(), json!(call.locale));
    }
    if let Some(turn) = turn {
        when.insert("turn".into(), json!(turn));
    }
    Value::Object(when)
}

/// Whether a script takes it for a language.
fn is_tag(locale: &str) -> bool {
    let mut parts = locale.split('-');
    let first = parts.next().unwrap_or_default();
    let is_short = |part: &str| (1..=8).contains(&part.len());
    first.len() >= 2
        && is_short(first)
        && first.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| is_short(part) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        && locale.len() <= 35
}

fn steps(call: &RecordedCall<'_>, style: ScriptStyle) -> Vec<Value> {
    let mut steps = Vec::new();
    if let Some(stored) = call.message {
        let message = ScriptedReply::new(stored);
        if style.paced {
            steps.extend(message.silence(call.began));
        }
        for block in 0..stored.message.content.len() {
            message.block(block, style, &mut steps);
        }
    }
    steps.push(match call.end {
        CallEnd::Stop(reason, usage) => json!({"stop": stop(reason), "usage": cost(usage)}),
        CallEnd::Failed(class, RetryFlag::No) => json!({"error": observed::word(class)}),
        CallEnd::Failed(class, RetryFlag::Yes) => {
            json!({"error": observed::word(class), "retry": true})
        }
        CallEnd::Stalled => json!({"stall": true}),
    });
    steps
}

/// A reason that a script can give.
fn stop(reason: StopReason) -> String {
    match reason {
        StopReason::EndTurn
        | StopReason::MaxTokens
        | StopReason::StopSequence
        | StopReason::ToolUse => observed::word(reason),
        // Words of the house that no model says.
        StopReason::Cancelled | StopReason::Error => observed::word(StopReason::EndTurn),
    }
}

fn cost(usage: TokenUsage) -> Value {
    let mut cost = serde_json::to_value(usage).unwrap_or_default();
    if let Value::Object(fields) = &mut cost {
        fields.retain(|_, value| value.as_f64() != Some(0.0));
    }
    cost
}

/// How many deltas a message came in.
fn deltas(stored: &StoredMessage) -> usize {
    ScriptedReply::new(stored).cuts.len()
}

/// A message with where its pieces ended, if it streamed.
struct ScriptedReply<'s> {
    stored: &'s StoredMessage,
    cuts: Vec<DeltaCut>,
    /// The raw inputs of tools, by block.
    blocks: Vec<BlockFold>,
}

impl<'s> ScriptedReply<'s> {
    fn new(stored: &'s StoredMessage) -> Self {
        let (cuts, blocks) = match MessageFold::from_stored(stored) {
            Some(fold) => (fold.cuts, fold.blocks),
            None => (Vec::new(), Vec::new()),
        };
        Self {
            stored,
            cuts,
            blocks,
        }
    }

    /// The time before its first piece.
    fn silence(&self, began: Timestamp) -> Option<Value> {
        let first = self.cuts.first()?.time.as_millis();
        let wait = first
            .saturating_sub(began.as_millis())
            .max(0)
            .unsigned_abs();
        (wait > 0).then(|| json!({"pause_ms": wait.min(PAUSE_MS_MAX)}))
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
            // No model says these.
            ContentBlock::ToolResult { .. }
            | ContentBlock::Component { .. }
            | ContentBlock::Data { .. } => {}
        }
    }

    fn step(&self, kind: &str, pieces: Vec<&str>, at: usize, style: ScriptStyle) -> Value {
        let mut step = json!({kind: pieces});
        if style.paced
            && let Some(delay) = self.delay(at)
        {
            step["delay_ms"] = json!(delay);
        }
        step
    }

    /// The pieces of a block, in as many steps as its length needs.
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
                // A cut inside a character is none.
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

    /// The mean wait between the pieces of a block.
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
        // What did not come whole is told as it came, and so is what a script would fill in.
        let input = match raw {
            Some(raw) if read_input(raw).is_none() || raw.contains("{{") => json!(raw),
            _ if input.to_string().contains("{{") => json!(input.to_string()),
            _ => input.clone(),
        };
        let mut tool = json!({"name": name, "input": input});
        let cuts = self.cuts.iter().filter(|cut| cut.block as usize == at);
        let fragments = cuts.filter(|cut| cut.kind == CutKind::ToolInput).count();
        if fragments > 0 {
            tool["fragments"] = json!(fragments.min(FRAGMENTS_MAX));
        }
        json!({"tool": tool})
    }
}

#[cfg(test)]
mod tests;
