//! Prior context for a sub-agent that takes over from another, where the orchestrator's model wrote
//! none (S2-017): a summary of the last turn that called sub-agents, with labels in the language of
//! the turn. Its length is bounded and does not grow with the session.

use std::collections::HashSet;

use turnwire_event::port::TurnInput;
use turnwire_event::{ContentBlock, Message, Role, ToolUseId, TurnId};
use turnwire_pack::LocaleTable;

use crate::resources::message_metadata::is_not_executed;

/// The words before the question and the answer of a [`PriorExchange`], in one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PriorContextLabels {
    question: String,
    answer: String,
}

impl Default for PriorContextLabels {
    fn default() -> Self {
        Self {
            question: "Earlier the person asked:".to_owned(),
            answer: "The answer was:".to_owned(),
        }
    }
}

impl PriorContextLabels {
    /// The labels for `locale`, or for the nearest language that `locales` has.
    pub(crate) fn new(locales: &LocaleTable, locale: &str) -> Self {
        let default = Self::default();
        let label = |key: &str, default: String| {
            let line = locales.line(locale, key);
            line.map_or(default, |line| line.message.trim().to_owned())
        };
        Self {
            question: label("prior_context.question", default.question),
            answer: label("prior_context.answer", default.answer),
        }
    }
}

/// The question and answer of the newest earlier turn that called sub-agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PriorExchange {
    /// The ids of the sub-agents that the turn called.
    sub_agents: Vec<String>,
    user_text: String,
    answer_text: String,
}

impl PriorExchange {
    /// Searches `history` for the newest turn before `input` that called sub-agents;
    /// `sub_agent_called_by` maps the name of a tool to the id of the sub-agent that it calls.
    pub(crate) fn find(
        history: &[Message],
        input: &TurnInput,
        sub_agent_called_by: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let declined = declined_tool_uses(history);
        let sub_agents_called_in = |message: &Message| -> Vec<String> {
            let sub_agents = message.content.iter().filter_map(|block| match block {
                ContentBlock::ToolUse { id, name, .. } if !declined.contains(id) => {
                    sub_agent_called_by(name)
                }
                _ => None,
            });
            sub_agents.collect()
        };
        let is_earlier = |message: &&Message| message.turn_id != input.turn_id;
        let newest_first = history.iter().rev().filter(is_earlier);
        let mut calls = newest_first.filter(|message| !sub_agents_called_in(message).is_empty());
        let turn = calls.next()?.turn_id;
        let turn_messages = history.iter().filter(|message| message.turn_id == turn);
        Some(Self {
            sub_agents: turn_messages.flat_map(sub_agents_called_in).collect(),
            user_text: last_text(history, turn, Role::User),
            answer_text: last_text(history, turn, Role::Assistant),
        })
    }

    /// A summary for `sub_agent` of at most `chars_max` characters. `None` if the turn called that
    /// sub-agent, whose own history then has the exchange, or if there is no text.
    pub(crate) fn summary_for(
        &self,
        sub_agent: &str,
        labels: &PriorContextLabels,
        chars_max: usize,
    ) -> Option<String> {
        if self.sub_agents.iter().any(|id| id == sub_agent) {
            return None;
        }
        let (question_label, answer_label) = (&labels.question, &labels.answer);
        let label_chars = question_label.chars().count() + answer_label.chars().count();
        // One space behind each label, one between the two sentences.
        let available = chars_max.checked_sub(label_chars + 3)?;
        // Most questions are short: the question gets a third at most, the answer gets the rest.
        let question = truncate_words(&self.user_text, available / 3);
        let answer = truncate_words(&self.answer_text, available - question.chars().count());
        match (question.is_empty(), answer.is_empty()) {
            (true, true) => None,
            (false, true) => Some(format!("{question_label} {question}")),
            (true, false) => Some(format!("{answer_label} {answer}")),
            (false, false) => Some(format!(
                "{question_label} {question} {answer_label} {answer}"
            )),
        }
    }
}

/// The ids of the tool uses that were declined, so that no sub-agent was called.
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

/// The last text of `role` in `turn` that is not blank; empty if there is none.
fn last_text(history: &[Message], turn: TurnId, role: Role) -> String {
    let matches = |message: &&Message| message.turn_id == turn && message.role == role;
    let mut texts = history.iter().rev().filter(matches).map(Message::text);
    let last = texts.find(|text| !text.trim().is_empty());
    last.unwrap_or_default()
}

/// `text` on one line of at most `chars_max` characters. Longer text is truncated between words and
/// ends with `…`. If that would leave more than half of the line empty, the next word is truncated
/// too: some languages write no spaces.
pub(crate) fn truncate_words(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        let space = usize::from(chars > 0);
        let added = space + word.chars().count();
        // One character is reserved for `…`.
        if chars + added >= chars_max {
            if chars < chars_max / 2 {
                let remaining = (chars_max - chars).saturating_sub(space + 1);
                out.push_str(&" "[..space]);
                out.extend(word.chars().take(remaining));
            }
            if chars_max > 0 {
                out.push('…');
            }
            return out;
        }
        out.push_str(&" "[..space]);
        out.push_str(word);
        chars += added;
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
