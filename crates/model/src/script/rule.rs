//! A rule: when it speaks, and what it says in each call of a turn.
//!
//! A rule without `call` tells a whole turn: its steps are cut into calls, and the n-th time it
//! is asked in a turn it plays the n-th. A call ends with its `stop`, or where words or reasoning
//! follow tools, because a model says those after it has seen the results. The last call is
//! played again for as long as the turn goes on. A rule with `call` is that one call.

use std::sync::Arc;

use turnwire_pack::yaml::Located;

use super::asked::Asked;
use super::check;
use super::condition::Condition;
use super::error::Wrong;
use super::pattern::Patterns;
use super::reel::Reel;
use super::source::{RuleSource, StepSource, WhenSource};
use super::step::{Cue, Step};

/// One call of a rule.
#[derive(Debug)]
pub(crate) enum Take {
    /// Cut once, when the script was read.
    Ready(Arc<Reel>),
    /// Depends on the request, so it is cut anew each time.
    Fresh(Vec<Cue>),
}

/// One rule.
#[derive(Debug)]
pub(crate) struct Rule {
    when: Condition,
    pub(crate) call: Option<u32>,
    takes: Vec<Take>,
}

impl Rule {
    /// The rule that is written; none where patterns are only defined.
    pub(crate) fn new(
        source: Located<RuleSource>,
        patterns: &mut Patterns,
    ) -> Result<Option<Self>, Vec<Wrong>> {
        let at = source.position;
        let RuleSource {
            define,
            when,
            steps,
        } = source.value;
        if let Some(define) = define {
            if when.is_some() || steps.is_some() {
                let what = "`define` stands alone: write the rule as another item of the list";
                return Err(vec![Wrong::new(at, what)]);
            }
            let defined = define.into_values().map(|pattern| patterns.one(pattern));
            let wrong: Vec<Wrong> = defined.filter_map(Result::err).collect();
            return if wrong.is_empty() {
                Ok(None)
            } else {
                Err(wrong)
            };
        }
        let Some(steps) = steps else {
            let what = "the rule says nothing: write `steps`, a list";
            return Err(vec![Wrong::new(at, what)]);
        };
        Self::speaking(when.unwrap_or_default(), steps, patterns).map(Some)
    }

    fn speaking(
        mut when: WhenSource,
        source: Located<Vec<Located<StepSource>>>,
        patterns: &mut Patterns,
    ) -> Result<Self, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let call = when.call.take();
        if let Some(call) = call.as_ref().filter(|call| call.value == 0) {
            wrong.push(Wrong::new(call.position, "calls are counted from 1"));
        }
        let call = call.map(|call| call.value);
        let steps = &source.value;
        let stop = steps.iter().position(|step| step.value.stop.is_some());
        let after = stop.and_then(|at| steps.get(at + 1));
        if let Some(after) = after.filter(|_| call.is_some()) {
            let what = "a rule with `call` is one call: nothing follows its `stop`";
            wrong.push(Wrong::new(after.position, what));
        }
        let when = Condition::new(when, patterns).map_err(|one| wrong.push(one));
        let steps = check::steps(source, patterns).map_err(|more| wrong.extend(more));
        let (Ok(when), Ok(steps), true) = (when, steps, wrong.is_empty()) else {
            return Err(wrong);
        };
        let calls = if call.is_some() {
            vec![steps]
        } else {
            calls(steps)
        };
        Ok(Self {
            when,
            call,
            takes: calls.into_iter().map(Take::new).collect(),
        })
    }

    /// Whether it speaks to a request.
    pub(crate) fn hears(&self, asked: &Asked<'_>) -> bool {
        self.when.holds(asked)
    }

    /// What it plays the n-th time (from 0) it is asked in a turn.
    pub(crate) fn take(&self, nth: usize) -> Option<&Take> {
        self.takes.get(nth.min(self.takes.len().saturating_sub(1)))
    }

    /// What it listens for, if it listens for something.
    pub(crate) fn pattern(&self) -> Option<&str> {
        self.when.user()
    }
}

impl Take {
    fn new(cues: Vec<Cue>) -> Self {
        if cues.iter().all(Cue::is_fixed) {
            Self::Ready(Arc::new(Reel::new(&cues, None)))
        } else {
            Self::Fresh(cues)
        }
    }
}

/// Cuts the steps of a turn into its calls.
fn calls(cues: Vec<Cue>) -> Vec<Vec<Cue>> {
    let mut out = Vec::new();
    let mut call = Vec::new();
    let mut asked = false;
    // Pauses after tools wait for what they stand before.
    let mut pauses = Vec::new();
    for cue in cues {
        let step = &cue.step;
        let speaks = matches!(step, Step::Text { .. } | Step::Thinking { .. });
        if asked && matches!(step, Step::Pause(_)) {
            pauses.push(cue);
            continue;
        }
        if asked && speaks {
            out.push(std::mem::take(&mut call));
            asked = false;
        }
        call.append(&mut pauses);
        asked |= matches!(step, Step::Tool { .. });
        let stops = matches!(step, Step::Stop { .. });
        call.push(cue);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use turnwire_event::StopReason;

    use super::super::step::{Input, Words};
    use super::*;

    fn text() -> Step {
        let words = Words::plain("a".into());
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

    fn cut(steps: Vec<Step>) -> Vec<Vec<Step>> {
        let cues = steps.into_iter().map(|step| Cue { when: None, step });
        let calls = calls(cues.collect()).into_iter();
        let steps = |call: Vec<Cue>| call.into_iter().map(|cue| cue.step).collect();
        calls.map(steps).collect()
    }

    #[test]
    fn words_after_tools_are_the_next_call() {
        assert_eq!(
            cut(vec![
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
            cut(vec![tool(), pause(), stop(), Step::Stall]),
            [vec![tool(), pause(), stop()], vec![Step::Stall]]
        );
        assert_eq!(
            cut(vec![tool(), pause(), Step::Stall]),
            [vec![tool(), pause(), Step::Stall]]
        );
    }
}
