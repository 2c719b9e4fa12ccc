//! The conversation as vendors want it: turns alternate, the results of a message's tools stand
//! right behind it and all together, nothing is empty, and what a provider has given goes back to
//! that provider alone.
//!
//! ```text
//! said:    user  assistant(a, b)  tool(a)  user  tool(b)  assistant
//! thread:  user  assistant(a, b)  user(results a, b; words)   assistant
//! ```

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;
use turnwire_event::{ContentBlock, Role, ToolUseId};

use crate::request::{Request, Said};

/// Characters of a tool's name: what every vendor takes.
const NAME_CHARS_MAX: usize = 64;

/// A conversation.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Thread<'a> {
    /// The standing instruction and what the house has said besides, in order.
    pub(crate) system: Vec<&'a str>,
    /// What was said, by turns: no two of one side stand together.
    pub(crate) turns: Vec<Turn<'a>>,
}

/// What one side said without the other in between.
#[derive(Debug, PartialEq)]
pub(crate) enum Turn<'a> {
    /// The person's side.
    User {
        /// The results of the tools that the turn before asked for, in that order.
        results: Vec<Outcome<'a>>,
        /// The person's words.
        words: Vec<&'a str>,
    },
    /// The model's side, by messages: what belongs together in one does not reach into the next.
    Assistant(Vec<Vec<Part<'a>>>),
}

/// What a tool gave.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome<'a> {
    /// The use, by the name the vendor knows.
    pub(crate) id: String,
    /// Which tool it was, as in the use.
    pub(crate) name: Cow<'a, str>,
    /// The result.
    pub(crate) content: &'a Value,
    /// Whether it is an error.
    pub(crate) is_error: bool,
}

/// One thing a model said.
#[derive(Debug, PartialEq)]
pub(crate) enum Part<'a> {
    /// Words; never blank.
    Text {
        /// The words.
        text: &'a str,
        /// What the provider wants back with them.
        kept: Option<&'a Value>,
    },
    /// Reasoning of this very provider.
    Thinking {
        /// The reasoning.
        text: &'a str,
        /// Its seal.
        signature: Option<&'a str>,
        /// What the provider wants back with it.
        kept: Option<&'a Value>,
    },
    /// A tool use, of which there is a result.
    Use {
        /// Its name: the provider's own, else ours.
        id: String,
        /// Our name of it.
        ours: ToolUseId,
        /// Which tool, by a name that vendors take.
        name: Cow<'a, str>,
        /// With what.
        input: &'a Value,
        /// What the provider wants back with it.
        kept: Option<&'a Value>,
    },
    /// Something that only this provider can read.
    Sealed(&'a Value),
}

/// What a tool result says: its content, and whether it is an error.
type Told<'a> = (&'a Value, bool);

/// The conversation of a request to `provider`.
pub(crate) fn thread<'a>(provider: &str, request: &'a Request) -> Thread<'a> {
    let mut weaver = Weaver {
        provider,
        results: results(request),
        ids: HashSet::new(),
        thread: Thread::default(),
    };
    weaver.thread.system.extend(request.system.as_deref());
    for said in &request.messages {
        match said.role {
            Role::System => weaver.thread.system.extend(words(said)),
            Role::User | Role::Tool => weaver.user(said),
            Role::Assistant => weaver.assistant(said),
        }
    }
    weaver.answer();
    weaver.thread.system.retain(|text| !is_blank(text));
    weaver.thread
}

/// What a tool said, as text: strings as they are, everything else as JSON.
pub(crate) fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A tool's name as vendors take it. Models invent names, and a vendor that refuses one would refuse
/// every request that has it in its past.
fn taken(name: &str) -> Cow<'_, str> {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.len() <= NAME_CHARS_MAX && !name.is_empty() && name.chars().all(is_taken) {
        return Cow::Borrowed(name);
    }
    let chars = name.chars().take(NAME_CHARS_MAX);
    let mended: String = chars.map(|c| if is_taken(c) { c } else { '_' }).collect();
    Cow::Owned(if mended.is_empty() {
        "_".into()
    } else {
        mended
    })
}

/// Vendors refuse text that is nothing but white space.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn words(said: &Said) -> impl Iterator<Item = &str> {
    let texts = said.content.iter().filter_map(ContentBlock::as_text);
    texts.filter(|text| !is_blank(text))
}

fn results(request: &Request) -> HashMap<ToolUseId, Told<'_>> {
    let blocks = request.messages.iter().flat_map(|said| &said.content);
    let results = blocks.filter_map(|block| match block {
        ContentBlock::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => Some((*tool_use_id, (content, *is_error))),
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::Component { .. }
        | ContentBlock::Data { .. } => None,
    });
    results.collect()
}

struct Weaver<'a, 'p> {
    provider: &'p str,
    results: HashMap<ToolUseId, Told<'a>>,
    /// The names of uses that are taken: some servers begin anew with every answer.
    ids: HashSet<String>,
    thread: Thread<'a>,
}

impl<'a> Weaver<'a, '_> {
    fn user(&mut self, said: &'a Said) {
        self.answer();
        for text in words(said) {
            if let Some(Turn::User { words, .. }) = self.thread.turns.last_mut() {
                words.push(text);
            } else {
                self.thread.turns.push(Turn::User {
                    results: Vec::new(),
                    words: vec![text],
                });
            }
        }
    }

    /// Puts the results of the tools of the model's turn, if it is the last, behind it.
    fn answer(&mut self) {
        let Some(Turn::Assistant(said)) = self.thread.turns.last() else {
            return;
        };
        let outcomes = said.iter().flatten().filter_map(|part| match part {
            Part::Use { id, ours, name, .. } => {
                let (content, is_error) = *self.results.get(ours)?;
                Some(Outcome {
                    id: id.clone(),
                    name: name.clone(),
                    content,
                    is_error,
                })
            }
            Part::Text { .. } | Part::Thinking { .. } | Part::Sealed(_) => None,
        });
        let results: Vec<_> = outcomes.collect();
        if !results.is_empty() {
            self.thread.turns.push(Turn::User {
                results,
                words: Vec::new(),
            });
        }
    }

    fn assistant(&mut self, said: &'a Said) {
        let parts = self.parts(said);
        if parts.is_empty() {
            return;
        }
        match self.thread.turns.last_mut() {
            Some(Turn::Assistant(before)) => before.push(parts),
            Some(Turn::User { .. }) | None => {
                self.thread.turns.push(Turn::Assistant(vec![parts]));
            }
        }
    }

    fn parts(&mut self, said: &'a Said) -> Vec<Part<'a>> {
        let own = said.kept.by == self.provider && !said.kept.is_empty();
        let kept = |n: u32| said.kept.blocks.get(&n).filter(|_| own);
        let mut parts = Vec::with_capacity(said.content.len());
        for (n, block) in (0_u32..).zip(&said.content) {
            let kept = kept(n);
            match block {
                ContentBlock::Text { text } if is_blank(text) => {
                    parts.extend(kept.map(Part::Sealed));
                }
                ContentBlock::Text { text } => parts.push(Part::Text { text, kept }),
                ContentBlock::Thinking { text, signature } if own => parts.push(Part::Thinking {
                    text,
                    signature: signature.as_deref(),
                    kept,
                }),
                ContentBlock::ToolUse { id, name, input } if self.results.contains_key(id) => {
                    parts.push(Part::Use {
                        id: self.name_of(*id, kept),
                        ours: *id,
                        name: taken(name),
                        input,
                        kept,
                    });
                }
                // Without its result a use is refused; the rest is not for a model.
                ContentBlock::Thinking { .. }
                | ContentBlock::ToolUse { .. }
                | ContentBlock::ToolResult { .. }
                | ContentBlock::Component { .. }
                | ContentBlock::Data { .. } => {}
            }
        }
        let behind = said.content.len() as u32;
        if own {
            let behind = said.kept.blocks.range(behind..);
            parts.extend(behind.map(|(_, data)| Part::Sealed(data)));
        }
        parts
    }

    fn name_of(&mut self, ours: ToolUseId, kept: Option<&Value>) -> String {
        let given = kept.and_then(|kept| kept.get("id")?.as_str());
        if let Some(id) = given.filter(|id| !id.is_empty())
            && self.ids.insert(id.to_owned())
        {
            return id.to_owned();
        }
        ours.to_string()
    }
}

#[cfg(test)]
mod tests;
