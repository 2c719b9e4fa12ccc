//! What went before, for a sub-agent that takes over from another (S2-017): who was asked last,
//! and what that was about, in a few words that do not grow with the session.

use std::collections::HashSet;

use turnwire_event::port::TurnInput;
use turnwire_event::{ContentBlock, Message, Role, ToolUseId, TurnId};

use crate::resources::agent_resources::is_not_executed;

/// The last turn that asked sub-agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    agents: Vec<String>,
    asked: String,
    answered: String,
}

impl Before {
    /// Looks for it in `history`, newest first; `resolve` tells which sub-agent a tool asks.
    pub(crate) fn find(
        history: &[Message],
        input: &TurnInput,
        resolve: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let refused = refused(history);
        let asked = |message: &Message| -> Vec<String> {
            let uses = message.content.iter().filter_map(|block| match block {
                ContentBlock::ToolUse { id, name, .. } if !refused.contains(id) => resolve(name),
                _ => None,
            });
            uses.collect()
        };
        let old = |message: &&Message| message.turn_id != input.turn_id;
        let newest = history.iter().rev().filter(old);
        let turn = newest
            .filter(|message| !asked(message).is_empty())
            .map(|message| message.turn_id)
            .next()?;
        let of_turn = || history.iter().filter(|message| message.turn_id == turn);
        Some(Self {
            agents: of_turn().flat_map(asked).collect(),
            asked: last_words(history, turn, Role::User),
            answered: last_words(history, turn, Role::Assistant),
        })
    }

    /// What `agent` should know of it, in at most `chars_max` characters; nothing if it was one
    /// of those asked, or if there is nothing to say.
    pub(crate) fn prose_for(&self, agent: &str, chars_max: usize) -> Option<String> {
        if self.agents.iter().any(|asked| asked == agent) {
            return None;
        }
        let (first, second) = ("Earlier the person asked: ", "The answer was: ");
        let room = chars_max.checked_sub(first.len() + second.len() + 1)?;
        // The question is mostly short; what it leaves is the answer's.
        let asked = cut(&self.asked, room / 3);
        let answered = cut(&self.answered, room - asked.chars().count());
        match (asked.is_empty(), answered.is_empty()) {
            (true, true) => None,
            (false, true) => Some(format!("{first}{asked}")),
            (true, false) => Some(format!("{second}{answered}")),
            (false, false) => Some(format!("{first}{asked} {second}{answered}")),
        }
    }
}

/// The tool uses that asked nobody: one that was not executed has told its sub-agent nothing.
fn refused(history: &[Message]) -> HashSet<ToolUseId> {
    let results = history.iter().filter(|message| is_not_executed(message));
    results
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            ContentBlock::ToolResult { tool_use_id, .. } => Some(*tool_use_id),
            _ => None,
        })
        .collect()
}

fn last_words(history: &[Message], turn: TurnId, role: Role) -> String {
    let said = |m: &&Message| m.turn_id == turn && m.role == role;
    let mut words = history.iter().rev().filter(said).map(Message::text);
    words
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default()
}

/// `text` on one line, at most `chars_max` characters, cut between words and marked with `…`. A
/// word that would leave more than half of the room empty is cut itself: there are languages that
/// write no spaces.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let gap = usize::from(length > 0);
        let more = gap + word.chars().count();
        // One is left for the mark.
        if length + more >= chars_max {
            if length < chars_max / 2 {
                let room = (chars_max - length).saturating_sub(gap + 1);
                out.push_str(&" "[..gap]);
                out.extend(word.chars().take(room));
            }
            if chars_max > 0 {
                out.push('…');
            }
            return out;
        }
        out.push_str(&" "[..gap]);
        out.push_str(word);
        length += more;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_between_words_and_within_its_bound() {
        assert_eq!(cut("one  two\nthree", 20), "one two three");
        assert_eq!(cut("one two three", 9), "one two…");
        assert_eq!(cut("äöü äöü", 5), "äöü…");
        assert_eq!(cut("endless", 3), "en…");
        assert_eq!(cut("endless", 1), "…");
        assert_eq!(cut("a endless", 6), "a end…");
        assert_eq!(cut("牛乳の特売を探しています", 6), "牛乳の特売…");
        assert_eq!(cut(r#"{"items":["oat","soy"]}"#, 12), r#"{"items":["…"#);
        assert_eq!(cut("endless", 0), "");
        for most in 0..40 {
            for text in [
                "a bb ccc dddd eeeee",
                "a bbbbbbbbbbbbbbbbbbbbbb",
                "äöüäöüäöü",
            ] {
                assert!(cut(text, most).chars().count() <= most);
            }
        }
    }
}
