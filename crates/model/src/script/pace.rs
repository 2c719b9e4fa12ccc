//! The pace of a script: pauses that make its calls look like those of a real model. They are beside
//! the steps, so that tests can play the same script without them.

use std::time::Duration;

use turnwire_pack::yaml::Located;

use super::check::pace_ms;
use super::error::{Checked, ScriptMistake};
use super::source::{PaceSource, ScriptRuleSource};

/// Pauses of every call; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScriptPace {
    /// The pause before the first delta of a call.
    pub(crate) first: Duration,
    /// The least delay before each delta of text and reasoning.
    pub(crate) word: Duration,
}

impl ScriptPace {
    /// Checks the pace of an item of the script, which has nothing else.
    pub(super) fn new(source: Located<ScriptRuleSource>) -> Checked<Option<Self>> {
        let ScriptRuleSource {
            define,
            pace,
            when,
            steps,
        } = source.value;
        let Some(pace) = pace else {
            return Ok(None);
        };
        if define.is_some() || when.is_some() || steps.is_some() {
            let message =
                "an item with `pace` has no other keys: write the rule as another item of the list";
            return Err(ScriptMistake::new(source.position, message));
        }
        let PaceSource { first_ms, word_ms } = pace.value;
        Ok(Some(Self {
            first: pace_ms(first_ms, "first_ms")?,
            word: pace_ms(word_ms, "word_ms")?,
        }))
    }

    /// The pace in percent of its pauses.
    pub(crate) fn scaled(self, percent: u32) -> Self {
        let scaled = |pause: Duration| pause * percent / 100;
        Self {
            first: scaled(self.first),
            word: scaled(self.word),
        }
    }
}
