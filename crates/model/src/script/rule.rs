//! A rule: when it speaks, and what it says in each call of a turn.
//!
//! A rule without `call` tells a whole turn: its steps are cut into calls, and the n-th time it
//! is asked in a turn it plays the n-th. A call ends with its `stop`, or where words or reasoning
//! follow tools, because a model says those after it has seen the results. The last call is
//! played again for as long as the turn goes on. A rule with `call` is that one call.

use std::sync::Arc;

use regex::Regex;
use serde_saphyr::Spanned;

use super::check;
use super::error::Wrong;
use super::reel::Reel;
use super::source::RuleSource;
use super::step::{Quotes, Step};

/// One call of a rule.
#[derive(Debug)]
pub(crate) enum Take {
    /// Cut once, when the script was read.
    Ready(Arc<Reel>),
    /// Quotes what was said, so it is cut anew each time.
    Fresh(Vec<Step>),
}

/// One rule.
#[derive(Debug)]
pub(crate) struct Rule {
    user: Option<Regex>,
    agent: Option<String>,
    pub(crate) call: Option<u32>,
    takes: Vec<Take>,
}

impl Rule {
    pub(crate) fn new(source: Spanned<RuleSource>) -> Result<Self, Wrong> {
        let source = source.value;
        let user = match source.when.user {
            None => None,
            Some(pattern) => Some(Regex::new(&pattern.value).map_err(|error| {
                let what = format!("the pattern cannot be used: {}", reason(&error));
                Wrong::new(pattern.referenced, what)
            })?),
        };
        let call = match source.when.call {
            None => None,
            Some(call) if call.value == 0 => {
                return Err(Wrong::new(call.referenced, "calls are counted from 1"));
            }
            Some(call) => Some(call.value),
        };
        let steps = &source.steps.value;
        let stop = steps.iter().position(|step| step.value.stop.is_some());
        let after = stop.and_then(|at| steps.get(at + 1));
        if let Some(after) = after.filter(|_| call.is_some()) {
            let what = "a rule with `call` is one call: nothing follows its `stop`";
            return Err(Wrong::new(after.referenced, what));
        }
        let steps = check::steps(source.steps)?;
        let calls = if call.is_some() {
            vec![steps]
        } else {
            calls(steps)
        };
        Ok(Self {
            user,
            agent: source.when.agent,
            call,
            takes: calls.into_iter().map(Take::new).collect(),
        })
    }

    /// Whether it speaks when `agent` asks and the person said `user`.
    pub(crate) fn hears(&self, agent: &str, user: &str) -> bool {
        self.agent.as_deref().is_none_or(|name| name == agent)
            && self
                .user
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(user))
    }

    /// What it plays the n-th time (from 0) it is asked in a turn.
    pub(crate) fn take(&self, nth: usize) -> Option<&Take> {
        self.takes.get(nth.min(self.takes.len().saturating_sub(1)))
    }

    /// What it listens for, if it listens for something.
    pub(crate) fn pattern(&self) -> Option<&str> {
        self.user.as_ref().map(Regex::as_str)
    }
}

impl Take {
    fn new(steps: Vec<Step>) -> Self {
        if steps.iter().any(Step::quotes) {
            Self::Fresh(steps)
        } else {
            Self::Ready(Arc::new(Reel::new(&steps, &Quotes::default())))
        }
    }
}

/// Cuts the steps of a turn into its calls.
fn calls(steps: Vec<Step>) -> Vec<Vec<Step>> {
    let mut out = Vec::new();
    let mut call = Vec::new();
    let mut asked = false;
    // Pauses after tools wait for what they stand before.
    let mut pauses = Vec::new();
    for step in steps {
        let speaks = matches!(step, Step::Text { .. } | Step::Thinking { .. });
        if asked && matches!(step, Step::Pause(_)) {
            pauses.push(step);
            continue;
        }
        if asked && speaks {
            out.push(std::mem::take(&mut call));
            asked = false;
        }
        call.append(&mut pauses);
        asked |= matches!(step, Step::Tool { .. });
        let stops = matches!(step, Step::Stop { .. });
        call.push(step);
        if stops {
            out.push(std::mem::take(&mut call));
            asked = false;
        }
    }
    call.append(&mut pauses);
    if !call.is_empty() {
        out.push(call);
    }
    out
}

/// The last line of a regex error is what is wrong; the lines above draw where.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use turnwire_event::StopReason;

    use super::super::step::{Input, Words};
    use super::*;

    fn text() -> Step {
        let words = Words {
            text: "a".into(),
            chunk: None,
            delay: Duration::ZERO,
        };
        Step::Text { words, repeat: 1 }
    }

    fn tool() -> Step {
        Step::Tool {
            name: "echo".into(),
            input: Input::Raw(String::new()),
            fragments: None,
            delay: Duration::ZERO,
        }
    }

    fn pause() -> Step {
        Step::Pause(Duration::from_secs(1))
    }

    fn stop() -> Step {
        Step::Stop {
            reason: StopReason::EndTurn,
            usage: None,
        }
    }

    #[test]
    fn words_after_tools_are_the_next_call() {
        assert_eq!(
            calls(vec![
                text(),
                tool(),
                pause(),
                tool(),
                pause(),
                text(),
                text()
            ]),
            [
                vec![text(), tool(), pause(), tool()],
                vec![pause(), text(), text()]
            ]
        );
    }

    #[test]
    fn a_stop_ends_its_call_and_breaks_stay_in_theirs() {
        assert_eq!(
            calls(vec![tool(), pause(), stop(), Step::Stall]),
            [vec![tool(), pause(), stop()], vec![Step::Stall]]
        );
        assert_eq!(
            calls(vec![tool(), pause(), Step::Stall]),
            [vec![tool(), pause(), Step::Stall]]
        );
    }
}
