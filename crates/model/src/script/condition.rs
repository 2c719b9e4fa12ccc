//! The condition of a rule or of a single step: every key of its `when` must hold. The keys are
//! described in [`ConditionSource`].

use regex::Regex;
use turnwire_pack::yaml::{Located, TextPosition};

use super::error::{Checked, ScriptMistake};
use super::pattern::PatternCache;
use super::request_view::RequestView;
use super::source::ConditionSource;

/// Longest language tag in a script, in characters.
const TAG_CHARS_MAX: usize = 35;

/// A condition on a request, tested against a [`RequestView`]. An empty condition always holds.
#[derive(Debug, Default)]
pub(crate) struct RuleCondition {
    /// The user's text is exactly this.
    says: Option<String>,
    /// All of these match the user's text.
    user: Vec<Regex>,
    /// None of these matches the user's text.
    not: Vec<Regex>,
    agent: Option<String>,
    attempt: Option<u32>,
    turn: Option<u32>,
    locale: Option<String>,
    result: Option<Regex>,
    results: Vec<(String, Regex)>,
    answered: Option<String>,
    failed: Option<String>,
    /// At least so many tool results are new.
    answers: usize,
}

impl RuleCondition {
    /// Checks a [`ConditionSource`]; its `call` belongs to the rule and is not part of the
    /// condition.
    pub(crate) fn new(source: ConditionSource, patterns: &mut PatternCache) -> Checked<Self> {
        let results = source.results.unwrap_or_default().into_iter();
        let results = results.map(|(tool, pattern)| Ok((tool, patterns.compile(pattern)?)));
        let results = results.collect::<Checked<_>>()?;
        let result = source.result.map(|pattern| patterns.compile(pattern));
        Ok(Self {
            says: source.says,
            user: patterns.compile_all(source.user)?,
            not: patterns.compile_all(source.not)?,
            agent: source.agent.map(|agent| agent.value),
            attempt: ordinal(source.attempt.as_ref(), "attempts")?,
            turn: ordinal(source.turn.as_ref(), "turns")?,
            locale: source.locale.map(tag).transpose()?,
            result: result.transpose()?,
            results,
            answered: source.answered.map(|tool| tool.value),
            failed: source.failed.map(|tool| tool.value),
            answers: source.answers.unwrap_or_default() as usize,
        })
    }

    /// True if the condition holds. Cheap tests come first.
    pub(crate) fn is_met(&self, view: &RequestView<'_>) -> bool {
        let has_outcome = |tool: &String, is_error: bool| {
            let answer = view.tool_answer(tool);
            answer.is_some_and(|answer| answer.is_error == is_error)
        };
        let newest = || view.tool_answers().iter().filter(|answer| answer.is_newest);
        let agent = self.agent.as_ref();
        let (locale, result) = (self.locale.as_ref(), self.result.as_ref());
        let (failed, answered) = (self.failed.as_ref(), self.answered.as_ref());
        agent.is_none_or(|name| *name == view.request.agent)
            && self.attempt.is_none_or(|n| n == view.request.attempt)
            && locale.is_none_or(|tag| view.matches_locale(tag))
            && self.says.as_ref().is_none_or(|exact| *exact == view.user)
            && self
                .turn
                .is_none_or(|turn| turn as usize == view.turn_number())
            && self.user.iter().all(|pattern| pattern.is_match(&view.user))
            && !self.not.iter().any(|pattern| pattern.is_match(&view.user))
            && (self.answers == 0 || newest().count() >= self.answers)
            && failed.is_none_or(|tool| has_outcome(tool, true))
            && answered.is_none_or(|tool| has_outcome(tool, false))
            && result.is_none_or(|pattern| newest().any(|answer| pattern.is_match(&answer.text)))
            && self.results.iter().all(|(tool, pattern)| {
                let answer = view.tool_answer(tool);
                answer.is_some_and(|answer| pattern.is_match(&answer.text))
            })
    }

    /// The first pattern for the user's text, if there is one.
    pub(crate) fn user_pattern(&self) -> Option<&str> {
        self.user.first().map(Regex::as_str)
    }
}

/// Checks the number of one of `things`.
pub(crate) fn ordinal(number: Option<&Located<u32>>, things: &str) -> Checked<Option<u32>> {
    match number {
        Some(number) if number.value == 0 => {
            let message = format!("{things} are counted from 1");
            Err(ScriptMistake::new(number.position, message))
        }
        number => Ok(number.map(|number| number.value)),
    }
}

/// Checks a language tag such as `de` or `pt-BR`.
fn tag(tag: Located<String>) -> Checked<String> {
    check_tag(&tag.value, tag.position)?;
    Ok(tag.value)
}

/// Fails with a mistake at `location` if `tag` cannot be a language tag.
pub(crate) fn check_tag(tag: &str, location: TextPosition) -> Checked<()> {
    let parts = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let first = tag.split('-').next().unwrap_or_default();
    let is_language = first.len() >= 2 && first.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_language && tag.len() <= TAG_CHARS_MAX && tag.split('-').all(parts) {
        return Ok(());
    }
    let message = format!(
        "`{}` is not a language tag: write one such as `de` or `pt-BR`",
        tag.escape_debug()
    );
    Err(ScriptMistake::new(location, message))
}
