//! Checks the steps of a rule: each step has one kind, only the options of that kind, and values
//! within limits. Reports the first mistake of each step with its location.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{StopReason, TokenUsage};
use turnwire_pack::yaml::{Located, TextPosition};

use crate::delta::{ModelError, RetryHint};

use super::condition::{self, RuleCondition};
use super::error::{Checked, ScriptMistake};
use super::pattern::PatternCache;
use super::placeholder;
use super::source::{ConditionSource, StepSource, TextsSource, ToolUseSource, UsageSource};
use super::split;
use super::step::{ConditionalStep, ScriptStep, StreamedText, ToolInput};

/// Largest number of steps in a rule.
pub(crate) const STEPS_MAX: usize = 1_000;
/// Largest text of a step in bytes: as much as a request may have.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;
/// Largest text of a step with its repetitions in bytes: the agent accepts no longer message.
pub(crate) const CALL_BYTES_MAX: usize = 16 << 20;
/// Longest delay before a delta, in milliseconds.
const DELAY_MS_MAX: u64 = 60_000;
/// Longest pause in milliseconds: a turn may take no longer; use `stall` to wait forever.
const PAUSE_MS_MAX: u64 = 600_000;
/// Largest number of fragments of a tool input.
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

/// Checks the steps of a rule.
pub(crate) fn steps(
    source: Located<Vec<Located<StepSource>>>,
    patterns: &mut PatternCache,
) -> Result<Vec<ConditionalStep>, Vec<ScriptMistake>> {
    let location = source.position;
    if source.value.is_empty() {
        let message = "the rule has no steps: write at least one";
        return Err(vec![ScriptMistake::new(location, message)]);
    }
    if source.value.len() > STEPS_MAX {
        let message = format!("{} steps; at most {STEPS_MAX}", source.value.len());
        return Err(vec![ScriptMistake::new(location, message)]);
    }
    let mut mistakes = Vec::new();
    let steps = source.value.into_iter().filter_map(|step| {
        let step = conditional_step(step, patterns);
        step.map_err(|mistake| mistakes.push(mistake)).ok()
    });
    let steps = steps.collect();
    match mistakes.is_empty() {
        true => Ok(steps),
        false => Err(mistakes),
    }
}

fn conditional_step(
    source: Located<StepSource>,
    patterns: &mut PatternCache,
) -> Checked<ConditionalStep> {
    let location = source.position;
    let mut source = source.value;
    let when = source.when.take().map(|source| when(source, patterns));
    let when = when.transpose()?;
    let step = step_kind(location, &mut source)?;
    // Remaining options belong to another kind of step.
    let unused_options = [
        ("retry", source.retry.map(|s| s.position)),
        ("retry_after_ms", source.retry_after_ms.map(|s| s.position)),
        ("signature", source.signature.map(|s| s.position)),
        ("chunk", source.chunk.map(|s| s.position)),
        ("delay_ms", source.delay_ms.map(|s| s.position)),
        ("repeat", source.repeat.map(|s| s.position)),
        ("usage", source.usage.map(|s| s.position)),
    ];
    for (key, location) in unused_options {
        if let Some(location) = location {
            let message = format!("`{key}` is not an option of this step");
            return Err(ScriptMistake::new(location, message));
        }
    }
    Ok(ConditionalStep { when, step })
}

/// Checks a step's [`RuleCondition`]. The call number belongs to the rule.
fn when(source: Located<ConditionSource>, patterns: &mut PatternCache) -> Checked<RuleCondition> {
    if let Some(call) = &source.value.call {
        let message = "`call` belongs to the rule's `when`, not to a step's";
        return Err(ScriptMistake::new(call.position, message));
    }
    RuleCondition::new(source.value, patterns)
}

/// Checks the kind of a step, and takes the options of that kind out of `source`.
fn step_kind(location: TextPosition, source: &mut StepSource) -> Checked<ScriptStep> {
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
        let message = "a step is exactly one of text, texts, thinking, said, thought, tool, pause_ms, stall, \
             error, stop";
        return Err(ScriptMistake::new(location, message));
    }
    if let Some(text) = source.text.take() {
        return text_step(text, Vec::new(), source);
    }
    if let Some(translations) = source.texts.take() {
        let (first, translations) = texts(translations)?;
        return text_step(first, translations, source);
    }
    if let Some(text) = source.thinking.take() {
        let signature = source.signature.take().map(|s| s.value);
        return streamed_text(text, Vec::new(), source)
            .map(|text| ScriptStep::Thinking { text, signature });
    }
    if let Some(fixed) = source.said.take() {
        return fixed_text(fixed, source).map(|text| ScriptStep::Text { text, repeat: 1 });
    }
    if let Some(fixed) = source.thought.take() {
        let signature = source.signature.take().map(|s| s.value);
        return fixed_text(fixed, source).map(|text| ScriptStep::Thinking { text, signature });
    }
    if let Some(tool_source) = source.tool.take() {
        return tool(tool_source.value);
    }
    if let Some(pause) = source.pause_ms.take() {
        return millis(pause, "pause_ms", PAUSE_MS_MAX).map(ScriptStep::Pause);
    }
    if let Some(stall) = source.stall.take() {
        let mistake =
            ScriptMistake::new(stall.position, "`stall` is `true`, or leave the step out");
        return stall.value.then_some(ScriptStep::Stall).ok_or(mistake);
    }
    if let Some(class) = source.error.take() {
        return failure(class, source).map(ScriptStep::Error);
    }
    match source.stop.take() {
        Some(reason) => Ok(ScriptStep::Stop {
            reason: choice_of(reason, "a reason to stop", &REASONS)?,
            usage: source.usage.take().map(usage).transpose()?,
        }),
        None => Err(ScriptMistake::new(location, "the step is empty")),
    }
}

/// Checks an error step, and whether it may be retried.
fn failure(class: Located<String>, source: &mut StepSource) -> Checked<ModelError> {
    let class = choice_of(class, "an error class", &CLASSES)?;
    let retry = source.retry.take();
    let again = match (retry, source.retry_after_ms.take()) {
        (Some(retry), Some(_)) if !retry.value => {
            let message =
                "`retry: false` cannot be combined with `retry_after_ms`: leave one of them out";
            return Err(ScriptMistake::new(retry.position, message));
        }
        (_, Some(after)) => RetryHint::After(millis(after, "retry_after_ms", PAUSE_MS_MAX)?),
        (Some(retry), None) if retry.value => RetryHint::Backoff,
        (Some(_) | None, None) => RetryHint::Never,
    };
    Ok(ModelError::new(class, again))
}

/// The text of the first language, the fallback for all others, and all translations.
fn texts(source: Located<TextsSource>) -> Checked<(Located<String>, Vec<Translation>)> {
    let location = source.position;
    let translations = source.value.0;
    let Some((_, first)) = translations.first().cloned() else {
        let message = "`texts` has `language: text` pairs: write at least one";
        return Err(ScriptMistake::new(location, message));
    };
    for (tag, text) in &translations {
        condition::check_tag(tag, text.position)?;
    }
    // The first language is listed too, so that a later, less specific tag does not match before
    // it.
    Ok((first, translations))
}

/// A language tag and the text in that language.
type Translation = (String, Located<String>);

fn text_step(
    text: Located<String>,
    translations: Vec<Translation>,
    source: &mut StepSource,
) -> Checked<ScriptStep> {
    let repeat = source.repeat.take();
    let bytes_max = translations.iter().map(|(_, text)| text.value.len());
    let bytes_max = bytes_max.fold(text.value.len(), usize::max);
    let text = streamed_text(text, translations, source)?;
    let repeat = match repeat {
        None => 1,
        Some(repeat) => {
            let max = (CALL_BYTES_MAX / bytes_max.max(1)) as u64;
            let location = repeat.position;
            let times = bounded(repeat, "repeat", 1, max.min(1_000_000))?;
            if text.has_placeholders() {
                let message = "`repeat` cannot be combined with placeholders: write the text out";
                return Err(ScriptMistake::new(location, message));
            }
            times as u32
        }
    };
    Ok(ScriptStep::Text { text, repeat })
}

fn streamed_text(
    text: Located<String>,
    translations: Vec<Translation>,
    source: &mut StepSource,
) -> Checked<StreamedText> {
    for text in translations.iter().map(|(_, text)| text).chain([&text]) {
        check_size(&text.value, text.position)?;
        placeholder::has_placeholders(&text.value)
            .map_err(|message| ScriptMistake::new(text.position, message))?;
    }
    let chunk = source.chunk.take();
    let chunk = chunk.map(|chunk| bounded(chunk, "chunk", 1, TEXT_BYTES_MAX as u64));
    let translations = translations
        .into_iter()
        .map(|(tag, text)| (tag, text.value));
    Ok(StreamedText {
        text: text.value,
        translations: translations.collect(),
        pieces: None,
        chunk: chunk.transpose()?.map(|chars| chars as usize),
        delay: delay(source.delay_ms.take())?,
    })
}

/// Checks text in fixed pieces. Empty pieces are dropped.
fn fixed_text(fixed: Located<Vec<String>>, source: &mut StepSource) -> Checked<StreamedText> {
    let pieces = fixed.value.iter().map(String::as_str);
    let ends = split::ends(pieces.filter(|piece| !piece.is_empty()));
    let text = fixed.value.concat();
    check_size(&text, fixed.position)?;
    Ok(StreamedText {
        pieces: Some(ends),
        delay: delay(source.delay_ms.take())?,
        ..StreamedText::new(text)
    })
}

fn check_size(text: &str, location: TextPosition) -> Checked<()> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("{} bytes; at most {TEXT_BYTES_MAX}", text.len());
    Err(ScriptMistake::new(location, message))
}

/// A pause of the script's pace; none if it is left out.
pub(super) fn pace_ms(source: Option<Located<u64>>, name: &str) -> Checked<Duration> {
    let pause = source.map(|pause| millis(pause, name, DELAY_MS_MAX));
    Ok(pause.transpose()?.unwrap_or_default())
}

/// The delay before each delta.
fn delay(source: Option<Located<u64>>) -> Checked<Duration> {
    let delay = source.map(|delay| millis(delay, "delay_ms", DELAY_MS_MAX));
    Ok(delay.transpose()?.unwrap_or_default())
}

fn tool(source: ToolUseSource) -> Checked<ScriptStep> {
    if source.name.value.is_empty() || source.name.value.len() > 128 {
        let message = "a tool's name has 1 to 128 characters";
        return Err(ScriptMistake::new(source.name.position, message));
    }
    let input = match source.input {
        None => ToolInput::Json(Value::Object(serde_json::Map::new())),
        Some(input) => match input.value {
            value @ Value::Object(_) => {
                let mistake = |message: &str| ScriptMistake::new(input.position, message);
                placeholder::has_placeholders_in(&value).map_err(mistake)?;
                ToolInput::Json(value)
            }
            Value::String(raw) => ToolInput::Raw(raw),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                let message = "`input` is `key: value` pairs, or raw text";
                return Err(ScriptMistake::new(input.position, message));
            }
        },
    };
    let fragments = source.fragments;
    let fragments = fragments.map(|count| bounded(count, "fragments", 1, FRAGMENTS_MAX));
    Ok(ScriptStep::Tool {
        name: source.name.value,
        input,
        fragments: fragments.transpose()?.map(|count| count as usize),
        delay: delay(source.delay_ms)?,
    })
}

fn usage(source: Located<UsageSource>) -> Checked<TokenUsage> {
    let values = source.value;
    let cost_usd = values.cost_usd.unwrap_or_default();
    if !cost_usd.is_finite() || cost_usd < 0.0 {
        let message = "`cost_usd` must be a number of at least 0";
        return Err(ScriptMistake::new(source.position, message));
    }
    let input_tokens = values.input_tokens.unwrap_or_default();
    let output_tokens = values.output_tokens.unwrap_or_default();
    Ok(TokenUsage {
        input_tokens,
        output_tokens,
        total_tokens: values
            .total_tokens
            .unwrap_or(input_tokens.saturating_add(output_tokens)),
        reasoning_tokens: values.reasoning_tokens.unwrap_or_default(),
        cached_tokens: values.cached_tokens.unwrap_or_default(),
        cost_usd,
        estimated: false,
    })
}

fn millis(value: Located<u64>, key: &str, max: u64) -> Checked<Duration> {
    bounded(value, key, 0, max).map(Duration::from_millis)
}

pub(crate) fn bounded(value: Located<u64>, key: &str, min: u64, max: u64) -> Checked<u64> {
    let (location, value) = (value.position, value.value);
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    let message = format!("`{key}` is {value}; {min} to {max} is allowed");
    Err(ScriptMistake::new(location, message))
}

fn choice_of<T: Copy>(name: Located<String>, noun: &str, choices: &[(&str, T)]) -> Checked<T> {
    if let Some((_, value)) = choices.iter().find(|(choice, _)| *choice == name.value) {
        return Ok(*value);
    }
    let choices: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
    let message = format!(
        "`{}` is not {noun}; write one of {}",
        name.value.escape_debug(),
        choices.join(", ")
    );
    Err(ScriptMistake::new(name.position, message))
}
