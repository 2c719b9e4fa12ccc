//! From what is written to what can be played: each step is one thing, says only what that thing
//! can say, and keeps within bounds. Of each step the first thing that is wrong is told, with its
//! place.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{StopReason, Usage};
use turnwire_pack::yaml::{Located, TextPosition};

use crate::delta::{Again, ModelError};

use super::chunk;
use super::condition::{self, Condition};
use super::error::Wrong;
use super::pattern::Patterns;
use super::quote;
use super::source::{StepSource, TextsSource, ToolSource, UsageSource, WhenSource};
use super::step::{Cue, Input, Step, Words};

/// Steps of one rule; more is a program, not a script.
pub(crate) const STEPS_MAX: usize = 1_000;
/// Bytes of one step's words: as much as a request may bring in.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;
/// Bytes of one step with its repeats: the agent takes no longer message.
pub(crate) const CALL_BYTES_MAX: usize = 16 << 20;
/// The wait before a delta.
const DELAY_MS_MAX: u64 = 60_000;
/// A pause; a turn may take no longer, and what waits for ever is a `stall`.
const PAUSE_MS_MAX: u64 = 600_000;
/// Pieces of a tool's input.
const FRAGMENTS_MAX: u64 = 1_000;

const CLASSES: [(&str, LlmErrorClass); 5] = [
    ("rate_limited", LlmErrorClass::RateLimited),
    ("timeout", LlmErrorClass::Timeout),
    ("transport", LlmErrorClass::Transport),
    ("provider", LlmErrorClass::Provider),
    ("internal", LlmErrorClass::Internal),
];

const REASONS: [(&str, StopReason); 4] = [
    ("end_turn", StopReason::EndTurn),
    ("max_tokens", StopReason::MaxTokens),
    ("stop_sequence", StopReason::StopSequence),
    ("tool_use", StopReason::ToolUse),
];

/// The steps of a rule.
pub(crate) fn steps(
    source: Located<Vec<Located<StepSource>>>,
    patterns: &mut Patterns,
) -> Result<Vec<Cue>, Vec<Wrong>> {
    let at = source.position;
    if source.value.is_empty() {
        let what = "the rule has no steps: write at least one";
        return Err(vec![Wrong::new(at, what)]);
    }
    if source.value.len() > STEPS_MAX {
        let what = format!("{} steps; at most {STEPS_MAX}", source.value.len());
        return Err(vec![Wrong::new(at, what)]);
    }
    let (mut cues, mut wrong) = (Vec::new(), Vec::new());
    for step in source.value {
        match cue(step, patterns) {
            Ok(cue) => cues.push(cue),
            Err(one) => wrong.push(one),
        }
    }
    if wrong.is_empty() {
        Ok(cues)
    } else {
        Err(wrong)
    }
}

fn cue(source: Located<StepSource>, patterns: &mut Patterns) -> Result<Cue, Wrong> {
    let at = source.position;
    let mut source = source.value;
    let when = source.when.take().map(|source| when(source, patterns));
    let when = when.transpose()?;
    let step = kind(at, &mut source)?;
    // What is left over belongs to another kind of step.
    let left = [
        ("retry", source.retry.map(|s| s.position)),
        ("retry_after_ms", source.retry_after_ms.map(|s| s.position)),
        ("signature", source.signature.map(|s| s.position)),
        ("chunk", source.chunk.map(|s| s.position)),
        ("delay_ms", source.delay_ms.map(|s| s.position)),
        ("repeat", source.repeat.map(|s| s.position)),
        ("usage", source.usage.map(|s| s.position)),
    ];
    match left
        .into_iter()
        .find_map(|(key, at)| at.map(|at| (key, at)))
    {
        Some((key, at)) => Err(Wrong::new(at, format!("`{key}` does not fit this step"))),
        None => Ok(Cue { when, step }),
    }
}

/// A step's own condition. Which call it belongs to is said by its rule.
fn when(source: Located<WhenSource>, patterns: &mut Patterns) -> Result<Condition, Wrong> {
    if let Some(call) = &source.value.call {
        let what = "`call` belongs to the rule's `when`, not to a step's";
        return Err(Wrong::new(call.position, what));
    }
    Condition::new(source.value, patterns)
}

/// What the step is, taking out of `source` what that kind may say.
fn kind(at: TextPosition, source: &mut StepSource) -> Result<Step, Wrong> {
    let kinds = usize::from(source.text.is_some())
        + usize::from(source.texts.is_some())
        + usize::from(source.thinking.is_some())
        + usize::from(source.said.is_some())
        + usize::from(source.thought.is_some())
        + usize::from(source.tool.is_some())
        + usize::from(source.pause_ms.is_some())
        + usize::from(source.stall.is_some())
        + usize::from(source.error.is_some())
        + usize::from(source.stop.is_some());
    if kinds != 1 {
        let what = "a step is exactly one of text, texts, thinking, said, thought, tool, pause_ms, stall, \
             error, stop";
        return Err(Wrong::new(at, what));
    }
    if let Some(text) = source.text.take() {
        return say(text, Vec::new(), source);
    }
    if let Some(written) = source.texts.take() {
        let (first, others) = texts(written)?;
        return say(first, others, source);
    }
    if let Some(text) = source.thinking.take() {
        let signature = source.signature.take().map(|s| s.value);
        return words(text, Vec::new(), source).map(|words| Step::Thinking { words, signature });
    }
    if let Some(written) = source.said.take() {
        return pieces(written, source).map(|words| Step::Text { words, repeat: 1 });
    }
    if let Some(written) = source.thought.take() {
        let signature = source.signature.take().map(|s| s.value);
        return pieces(written, source).map(|words| Step::Thinking { words, signature });
    }
    if let Some(asked) = source.tool.take() {
        return tool(asked.value);
    }
    if let Some(pause) = source.pause_ms.take() {
        return millis(pause, "pause_ms", PAUSE_MS_MAX).map(Step::Pause);
    }
    if let Some(stall) = source.stall.take() {
        let wrong = Wrong::new(stall.position, "`stall` is `true`, or leave the step out");
        return stall.value.then_some(Step::Stall).ok_or(wrong);
    }
    if let Some(class) = source.error.take() {
        return failure(class, source).map(Step::Error);
    }
    match source.stop.take() {
        Some(reason) => Ok(Step::Stop {
            reason: named(reason, "a reason to stop", &REASONS)?,
            usage: source.usage.take().map(usage).transpose()?,
        }),
        None => Err(Wrong::new(at, "an empty step")),
    }
}

/// A failure, and whether it may pass.
fn failure(class: Located<String>, source: &mut StepSource) -> Result<ModelError, Wrong> {
    let class = named(class, "an error class", &CLASSES)?;
    let retry = source.retry.take();
    let again = match (retry, source.retry_after_ms.take()) {
        (Some(retry), Some(_)) if !retry.value => {
            let what = "`retry: false` does not go with `retry_after_ms`: leave one of them out";
            return Err(Wrong::new(retry.position, what));
        }
        (_, Some(after)) => Again::After(millis(after, "retry_after_ms", PAUSE_MS_MAX)?),
        (Some(retry), None) if retry.value => Again::Soon,
        (Some(_) | None, None) => Again::Never,
    };
    Ok(ModelError::new(class, again))
}

/// The words of the first language, which stand for every other one too, and the rest.
fn texts(source: Located<TextsSource>) -> Result<(Located<String>, Vec<Other>), Wrong> {
    let at = source.position;
    let mut written = source.value.0.into_iter();
    let Some((tag, first)) = written.next() else {
        let what = "`texts` is `language: words` pairs: write at least one";
        return Err(Wrong::new(at, what));
    };
    condition::check_tag(&tag, first.position)?;
    let others: Vec<Other> = written.collect();
    for (tag, text) in &others {
        condition::check_tag(tag, text.position)?;
    }
    // The first language is also looked up, so that a later, wider tag does not take its place.
    let mut all = vec![(tag, first.clone())];
    all.extend(others);
    Ok((first, all))
}

/// A language tag and the words in it.
type Other = (String, Located<String>);

fn say(text: Located<String>, others: Vec<Other>, source: &mut StepSource) -> Result<Step, Wrong> {
    let repeat = source.repeat.take();
    let longest = others.iter().map(|(_, text)| text.value.len());
    let longest = longest.fold(text.value.len(), usize::max);
    let words = words(text, others, source)?;
    let repeat = match repeat {
        None => 1,
        Some(repeat) => {
            let most = (CALL_BYTES_MAX / longest.max(1)) as u64;
            let at = repeat.position;
            let times = bounded(repeat, "repeat", 1, most.min(1_000_000))?;
            if words.quotes() {
                let what = "`repeat` does not go with text that quotes: write the text out";
                return Err(Wrong::new(at, what));
            }
            times as u32
        }
    };
    Ok(Step::Text { words, repeat })
}

fn words(
    text: Located<String>,
    others: Vec<Other>,
    source: &mut StepSource,
) -> Result<Words, Wrong> {
    for text in others.iter().map(|(_, text)| text).chain([&text]) {
        if text.value.len() > TEXT_BYTES_MAX {
            let what = format!("{} bytes; at most {TEXT_BYTES_MAX}", text.value.len());
            return Err(Wrong::new(text.position, what));
        }
        quote::quotes(&text.value).map_err(|what| Wrong::new(text.position, what))?;
    }
    let chunk = source.chunk.take();
    let chunk = chunk.map(|chunk| bounded(chunk, "chunk", 1, TEXT_BYTES_MAX as u64));
    let others = others.into_iter().map(|(tag, text)| (tag, text.value));
    Ok(Words {
        text: text.value,
        others: others.collect(),
        pieces: None,
        chunk: chunk.transpose()?.map(|chars| chars as usize),
        delay: delay(source)?,
    })
}

/// Words in the pieces they came in. A piece of nothing is no piece.
fn pieces(written: Located<Vec<String>>, source: &mut StepSource) -> Result<Words, Wrong> {
    let pieces = written.value.iter().map(String::as_str);
    let ends = chunk::ends(pieces.filter(|piece| !piece.is_empty()));
    let text = written.value.concat();
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("{} bytes; at most {TEXT_BYTES_MAX}", text.len());
        return Err(Wrong::new(written.position, what));
    }
    Ok(Words {
        pieces: Some(ends),
        delay: delay(source)?,
        ..Words::plain(text)
    })
}

/// The wait before each delta.
fn delay(source: &mut StepSource) -> Result<Duration, Wrong> {
    let delay = source.delay_ms.take();
    let delay = delay.map(|delay| millis(delay, "delay_ms", DELAY_MS_MAX));
    Ok(delay.transpose()?.unwrap_or_default())
}

fn tool(source: ToolSource) -> Result<Step, Wrong> {
    if source.name.value.is_empty() || source.name.value.len() > 128 {
        let what = "a tool's name has 1 to 128 characters";
        return Err(Wrong::new(source.name.position, what));
    }
    let input = match source.input {
        None => Input::Json(Value::Object(serde_json::Map::new())),
        Some(input) => match input.value {
            value @ Value::Object(_) => {
                let wrong = |what: &str| Wrong::new(input.position, what);
                quote::quotes_in(&value).map_err(wrong)?;
                Input::Json(value)
            }
            Value::String(raw) => Input::Raw(raw),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                let what = "`input` is `key: value` pairs, or text that is sent as it is";
                return Err(Wrong::new(input.position, what));
            }
        },
    };
    let fragments = source.fragments;
    let fragments = fragments.map(|count| bounded(count, "fragments", 1, FRAGMENTS_MAX));
    let delay = source.delay_ms;
    let delay = delay.map(|delay| millis(delay, "delay_ms", DELAY_MS_MAX));
    Ok(Step::Tool {
        name: source.name.value,
        input,
        fragments: fragments.transpose()?.map(|count| count as usize),
        delay: delay.transpose()?.unwrap_or_default(),
    })
}

fn usage(source: Located<UsageSource>) -> Result<Usage, Wrong> {
    let given = source.value;
    let cost_usd = given.cost_usd.unwrap_or_default();
    if !cost_usd.is_finite() || cost_usd < 0.0 {
        let what = "`cost_usd` is a number from 0 up";
        return Err(Wrong::new(source.position, what));
    }
    let input_tokens = given.input_tokens.unwrap_or_default();
    let output_tokens = given.output_tokens.unwrap_or_default();
    Ok(Usage {
        input_tokens,
        output_tokens,
        total_tokens: given
            .total_tokens
            .unwrap_or(input_tokens.saturating_add(output_tokens)),
        reasoning_tokens: given.reasoning_tokens.unwrap_or_default(),
        cached_tokens: given.cached_tokens.unwrap_or_default(),
        cost_usd,
    })
}

fn millis(value: Located<u64>, key: &str, most: u64) -> Result<Duration, Wrong> {
    bounded(value, key, 0, most).map(Duration::from_millis)
}

pub(crate) fn bounded(value: Located<u64>, key: &str, least: u64, most: u64) -> Result<u64, Wrong> {
    let (at, value) = (value.position, value.value);
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let what = format!("`{key}` is {value}; {least} to {most} is allowed");
    Err(Wrong::new(at, what))
}

fn named<T: Copy>(name: Located<String>, what: &str, known: &[(&str, T)]) -> Result<T, Wrong> {
    if let Some((_, value)) = known.iter().find(|(known, _)| *known == name.value) {
        return Ok(*value);
    }
    let known: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
    let what = format!(
        "`{}` is not {what}; write one of {}",
        name.value.escape_debug(),
        known.join(", ")
    );
    Err(Wrong::new(name.position, what))
}
