//! Prior context for a sub-agent that takes over from another (S2-017): what the last dispatch was
//! about, in a few words that do not grow with the session.

use std::collections::HashSet;

use turnwire_event::port::TurnInput;
use turnwire_event::{ContentBlock, Message, Role, ToolUseId, TurnId};

use crate::resources::message_metadata::is_not_executed;

/// The last turn that called sub-agents; [`Self::find`] searches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PriorExchange {
    sub_agents: Vec<String>,
    user_text: String,
    answer_text: String,
}

impl PriorExchange {
    /// Finds the newest such turn in `history`; `resolve` maps a tool name to the sub-agent it
    /// calls.
    pub(crate) fn find(
        history: &[Message],
        input: &TurnInput,
        resolve: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let declined = declined_tool_uses(history);
        let called_by = |message: &Message| -> Vec<String> {
            let uses = message.content.iter().filter_map(|block| match block {
                ContentBlock::ToolUse { id, name, .. } if !declined.contains(id) => resolve(name),
                _ => None,
            });
            uses.collect()
        };
        let is_earlier = |message: &&Message| message.turn_id != input.turn_id;
        let newest_first = history.iter().rev().filter(is_earlier);
        let calling = newest_first.filter(|message| !called_by(message).is_empty());
        let turn = calling.map(|message| message.turn_id).next()?;
        let of_turn = history.iter().filter(|message| message.turn_id == turn);
        Some(Self {
            sub_agents: of_turn.flat_map(called_by).collect(),
            user_text: last_text(history, turn, Role::User),
            answer_text: last_text(history, turn, Role::Assistant),
        })
    }

    /// A summary for `sub_agent` of at most `chars_max` characters; `None` if that sub-agent took
    /// part in the exchange and so remembers it, or if there is no text.
    pub(crate) fn summary_for(&self, sub_agent: &str, chars_max: usize) -> Option<String> {
        if self.sub_agents.iter().any(|id| id == sub_agent) {
            return None;
        }
        let (first, second) = ("Earlier the person asked: ", "The answer was: ");
        let available = chars_max.checked_sub(first.len() + second.len() + 1)?;
        // The question is mostly short; the answer gets what it leaves.
        let question = truncate_words(&self.user_text, available / 3);
        let answer = truncate_words(&self.answer_text, available - question.chars().count());
        match (question.is_empty(), answer.is_empty()) {
            (true, true) => None,
            (false, true) => Some(format!("{first}{question}")),
            (true, false) => Some(format!("{second}{answer}")),
            (false, false) => Some(format!("{first}{question} {second}{answer}")),
        }
    }
}

/// The tool uses that were not executed: they reached no sub-agent.
fn declined_tool_uses(history: &[Message]) -> HashSet<ToolUseId> {
    let results = history.iter().filter(|message| is_not_executed(message));
    results
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            ContentBlock::ToolResult { tool_use_id, .. } => Some(*tool_use_id),
            _ => None,
        })
        .collect()
}

fn last_text(history: &[Message], turn: TurnId, role: Role) -> String {
    let matches = |m: &&Message| m.turn_id == turn && m.role == role;
    let mut texts = history.iter().rev().filter(matches).map(Message::text);
    let last = texts.find(|text| !text.trim().is_empty());
    last.unwrap_or_default()
}

/// `text` on one line of at most `chars_max` characters, truncated between words and marked with
/// `…`. A word that would leave more than half of the line empty is truncated itself: some
/// languages write no spaces.
pub(crate) fn truncate_words(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let gap = usize::from(length > 0);
        let added = gap + word.chars().count();
        // One character is reserved for the mark.
        if length + added >= chars_max {
            if length < chars_max / 2 {
                let remaining = (chars_max - length).saturating_sub(gap + 1);
                out.push_str(&" "[..gap]);
                out.extend(word.chars().take(remaining));
            }
            if chars_max > 0 {
                out.push('…');
            }
            return out;
        }
        out.push_str(&" "[..gap]);
        out.push_str(word);
        length += added;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_is_between_words_and_within_the_bound() {
        assert_eq!(truncate_words("one  two\nthree", 20), "one two three");
        assert_eq!(truncate_words("one two three", 9), "one two…");
        assert_eq!(truncate_words("äöü äöü", 5), "äöü…");
        assert_eq!(truncate_words("endless", 3), "en…");
        assert_eq!(truncate_words("endless", 1), "…");
        assert_eq!(truncate_words("a endless", 6), "a end…");
        assert_eq!(truncate_words("牛乳の特売を探しています", 6), "牛乳の特売…");
        assert_eq!(
            truncate_words(r#"{"items":["oat","soy"]}"#, 12),
            r#"{"items":["…"#
        );
        assert_eq!(truncate_words("endless", 0), "");
        for chars_max in 0..40 {
            for text in [
                "a bb ccc dddd eeeee",
                "a bbbbbbbbbbbbbbbbbbbbbb",
                "äöüäöüäöü",
            ] {
                assert!(truncate_words(text, chars_max).chars().count() <= chars_max);
            }
        }
    }
}
