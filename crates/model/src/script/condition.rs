//! When a rule or a single step of it speaks: everything that its `when` names must hold.

use regex::Regex;
use turnwire_pack::yaml::{Located, TextPosition};

use super::asked::Asked;
use super::error::Wrong;
use super::pattern::Patterns;
use super::source::WhenSource;

/// Characters of a language tag in a script.
const TAG_MAX: usize = 35;

/// What must hold of a request. One that names nothing always holds.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    /// The person said this and nothing else.
    says: Option<String>,
    /// All of these are found in what the person said.
    user: Vec<Regex>,
    /// None of these is.
    not: Vec<Regex>,
    agent: Option<String>,
    attempt: Option<u32>,
    turn: Option<usize>,
    locale: Option<String>,
    result: Option<Regex>,
    results: Vec<(String, Regex)>,
    answered: Option<String>,
    failed: Option<String>,
    /// So many tools have just answered, at least.
    answers: usize,
}

impl Condition {
    /// Checks what is written; `call` is the rule's business and left out.
    pub(crate) fn new(source: WhenSource, patterns: &mut Patterns) -> Result<Self, Wrong> {
        let results = source.results.unwrap_or_default().into_iter();
        let results = results
            .map(|(tool, wanted)| Ok((tool, patterns.one(wanted)?)))
            .collect::<Result<_, Wrong>>()?;
        let result = source.result.map(|wanted| patterns.one(wanted));
        Ok(Self {
            says: source.says,
            user: patterns.several(source.user)?,
            not: patterns.several(source.not)?,
            agent: source.agent.map(|agent| agent.value),
            attempt: source.attempt.map(attempt).transpose()?,
            turn: source.turn.map(turn).transpose()?,
            locale: source.locale.map(tag).transpose()?,
            result: result.transpose()?,
            results,
            answered: source.answered.map(|tool| tool.value),
            failed: source.failed.map(|tool| tool.value),
            answers: source.answers.unwrap_or_default() as usize,
        })
    }

    /// Whether it holds. What is cheap to see is looked at first.
    pub(crate) fn holds(&self, asked: &Asked<'_>) -> bool {
        let agent = |name: &String| *name == asked.request.agent;
        let failed = |tool: &String, failed: bool| {
            asked
                .answer(tool)
                .is_some_and(|answer| answer.failed == failed)
        };
        let newest = || asked.answers().iter().filter(|answer| answer.newest);
        self.agent.as_ref().is_none_or(agent)
            && self.attempt.is_none_or(|n| n == asked.request.attempt)
            && self.locale.as_ref().is_none_or(|tag| asked.speaks(tag))
            && self.says.as_ref().is_none_or(|words| *words == asked.user)
            && self.turn.is_none_or(|turn| turn == asked.turn())
            && self.user.iter().all(|wanted| wanted.is_match(&asked.user))
            && !self.not.iter().any(|other| other.is_match(&asked.user))
            && (self.answers == 0 || newest().count() >= self.answers)
            && self.failed.as_ref().is_none_or(|tool| failed(tool, true))
            && self
                .answered
                .as_ref()
                .is_none_or(|tool| failed(tool, false))
            && (self.result.as_ref())
                .is_none_or(|wanted| newest().any(|answer| wanted.is_match(&answer.text)))
            && self.results.iter().all(|(tool, wanted)| {
                let answer = asked.answer(tool);
                answer.is_some_and(|answer| wanted.is_match(&answer.text))
            })
    }

    /// The first pattern for the person's words, if there is one.
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.first().map(Regex::as_str)
    }
}

/// The number of a try.
fn attempt(attempt: Located<u32>) -> Result<u32, Wrong> {
    let wrong = Wrong::new(attempt.position, "attempts are counted from 1");
    (attempt.value > 0).then_some(attempt.value).ok_or(wrong)
}

/// The number of a turn.
fn turn(turn: Located<u32>) -> Result<usize, Wrong> {
    let wrong = Wrong::new(turn.position, "turns are counted from 1");
    (turn.value > 0).then_some(turn.value as usize).ok_or(wrong)
}

/// A language tag such as `de` or `pt-BR`.
pub(crate) fn tag(tag: Located<String>) -> Result<String, Wrong> {
    check_tag(&tag.value, tag.position)?;
    Ok(tag.value)
}

/// Whether `tag` can be a language tag; `at` is told if not.
pub(crate) fn check_tag(tag: &str, at: TextPosition) -> Result<(), Wrong> {
    let parts = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let first = tag.split('-').next().unwrap_or_default();
    let letters = first.len() >= 2 && first.bytes().all(|byte| byte.is_ascii_alphabetic());
    if letters && tag.len() <= TAG_MAX && tag.split('-').all(parts) {
        return Ok(());
    }
    let what = format!(
        "`{}` is not a language tag: write one such as `de` or `pt-BR`",
        tag.escape_debug()
    );
    Err(Wrong::new(at, what))
}
