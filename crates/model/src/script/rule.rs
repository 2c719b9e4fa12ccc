//! A rule: its condition, and what it plays in each call of a turn.
//!
//! A rule without `call` covers a whole turn: its steps are split into calls, and the n-th call of
//! the turn plays the n-th part. A call ends with its `stop`, or where text or reasoning follows
//! tool uses, because a model writes those after it has the results. The last part is repeated for
//! further calls. A rule with `call` covers that one call.

use std::sync::Arc;

use turnwire_pack::yaml::Located;

use super::call_plan::CallPlan;
use super::check;
use super::condition::{self, RuleCondition};
use super::error::ScriptMistake;
use super::pattern::PatternCache;
use super::source::{ConditionSource, ScriptRuleSource, StepSource};
use super::step::{ConditionalStep, ScriptStep};

/// One call that a [`ScriptRule`] plays.
#[derive(Debug)]
pub(crate) enum PlannedCall {
    /// The same for every request; prepared when the script was parsed.
    Ready(Arc<CallPlan>),
    /// Depends on the request; prepared for each call.
    PerRequest(Vec<ConditionalStep>),
}

/// A rule that has passed all checks.
#[derive(Debug)]
pub(crate) struct ScriptRule {
    pub(crate) when: RuleCondition,
    pub(crate) call: Option<u32>,
    calls: Vec<PlannedCall>,
}

impl ScriptRule {
    /// Checks a rule; `None` for an item that only defines patterns.
    pub(crate) fn new(
        source: Located<ScriptRuleSource>,
        patterns: &mut PatternCache,
    ) -> Result<Option<Self>, Vec<ScriptMistake>> {
        let location = source.position;
        let ScriptRuleSource {
            define,
            pace: _,
            when,
            steps,
        } = source.value;
        if let Some(define) = define {
            if when.is_some() || steps.is_some() {
                let message = "an item with `define` has no other keys: write the rule as another item of the list";
                return Err(vec![ScriptMistake::new(location, message)]);
            }
            let definitions = define.into_values();
            let mistakes = definitions.filter_map(|pattern| patterns.compile(pattern).err());
            let mistakes: Vec<ScriptMistake> = mistakes.collect();
            return match mistakes.is_empty() {
                true => Ok(None),
                false => Err(mistakes),
            };
        }
        let Some(steps) = steps else {
            let message = "the rule has no `steps`: write a list of steps";
            return Err(vec![ScriptMistake::new(location, message)]);
        };
        Self::with_steps(when.unwrap_or_default(), steps, patterns).map(Some)
    }

    fn with_steps(
        mut when: ConditionSource,
        source: Located<Vec<Located<StepSource>>>,
        patterns: &mut PatternCache,
    ) -> Result<Self, Vec<ScriptMistake>> {
        let call = when.call.take();
        let mut mistakes = Vec::from_iter(condition::ordinal(call.as_ref(), "calls").err());
        let call = call.map(|call| call.value);
        let steps = &source.value;
        let stop = steps.iter().position(|step| step.value.stop.is_some());
        let after = stop.and_then(|index| steps.get(index + 1));
        if let Some(after) = after.filter(|_| call.is_some()) {
            let message = "a rule with `call` covers one call: no step may follow its `stop`";
            mistakes.push(ScriptMistake::new(after.position, message));
        }
        let when = RuleCondition::new(when, patterns).map_err(|mistake| mistakes.push(mistake));
        let steps =
            check::steps(source, patterns).map_err(|step_mistakes| mistakes.extend(step_mistakes));
        let (Ok(when), Ok(steps), true) = (when, steps, mistakes.is_empty()) else {
            return Err(mistakes);
        };
        let calls = match call {
            Some(_) => vec![steps],
            None => into_calls(steps),
        };
        Ok(Self {
            when,
            call,
            calls: calls.into_iter().map(PlannedCall::new).collect(),
        })
    }

    /// The call that is played the n-th time (from 0) in a turn.
    pub(crate) fn call(&self, nth: usize) -> Option<&PlannedCall> {
        self.calls.get(nth.min(self.calls.len().saturating_sub(1)))
    }
}

impl PlannedCall {
    fn new(steps: Vec<ConditionalStep>) -> Self {
        if steps.iter().all(ConditionalStep::is_fixed) {
            Self::Ready(Arc::new(CallPlan::new(&steps, None)))
        } else {
            Self::PerRequest(steps)
        }
    }
}

/// Splits the steps of a turn into calls, each of which becomes a [`PlannedCall`].
fn into_calls(steps: Vec<ConditionalStep>) -> Vec<Vec<ConditionalStep>> {
    let mut out = Vec::new();
    let mut call = Vec::new();
    let mut has_tools = false;
    // Pauses after tools belong to the step after them.
    let mut pauses = Vec::new();
    for step in steps {
        let kind = &step.step;
        let is_content = matches!(kind, ScriptStep::Text { .. } | ScriptStep::Thinking { .. });
        if has_tools && matches!(kind, ScriptStep::Pause(_)) {
            pauses.push(step);
            continue;
        }
        if has_tools && is_content {
            out.push(std::mem::take(&mut call));
            has_tools = false;
        }
        call.append(&mut pauses);
        has_tools |= matches!(kind, ScriptStep::Tool { .. });
        let is_stop = matches!(kind, ScriptStep::Stop { .. });
        call.push(step);
        if is_stop {
            out.push(std::mem::take(&mut call));
            has_tools = false;
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

    use super::super::step::{StreamedText, ToolInput};
    use super::*;

    fn text() -> ScriptStep {
        let text = StreamedText::new("a".into());
        ScriptStep::Text { text, repeat: 1 }
    }

    fn tool() -> ScriptStep {
        ScriptStep::Tool {
            name: "echo".into(),
            input: ToolInput::Raw(String::new()),
            fragments: None,
            delay: Duration::ZERO,
        }
    }

    fn pause() -> ScriptStep {
        ScriptStep::Pause(Duration::from_secs(1))
    }

    fn stop() -> ScriptStep {
        ScriptStep::Stop {
            reason: StopReason::EndTurn,
            usage: None,
        }
    }

    fn split_steps(steps: Vec<ScriptStep>) -> Vec<Vec<ScriptStep>> {
        let steps = steps
            .into_iter()
            .map(|step| ConditionalStep { when: None, step });
        let calls = into_calls(steps.collect()).into_iter();
        let steps = |call: Vec<ConditionalStep>| call.into_iter().map(|step| step.step).collect();
        calls.map(steps).collect()
    }

    #[test]
    fn content_after_tools_starts_the_next_call() {
        assert_eq!(
            split_steps(vec![
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
    fn stop_ends_a_call_and_pauses_stay_in_theirs() {
        assert_eq!(
            split_steps(vec![tool(), pause(), stop(), ScriptStep::Stall]),
            [vec![tool(), pause(), stop()], vec![ScriptStep::Stall]]
        );
        assert_eq!(
            split_steps(vec![tool(), pause(), ScriptStep::Stall]),
            [vec![tool(), pause(), ScriptStep::Stall]]
        );
    }
}
