//! Checks doc comments: every public type, trait, function and constant has one, and none is so
//! short that it only repeats a name.
//!
//! The compiler's `missing_docs` also demands a comment on every field and variant, which invites
//! comments like "The id." on `id`. Here fields and variants need a comment only where the name
//! leaves a question open.

use crate::finding::Finding;
use crate::source::Source;

/// Comments with fewer words than this say no more than the name below them.
const WORDS_MIN: usize = 4;

/// Keywords that may stand between `pub` and the kind of an item.
const QUALIFIERS: [&str; 3] = ["const", "async", "unsafe"];
/// Kinds of items that need a doc comment when they are public.
const KINDS: [&str; 6] = ["fn", "struct", "enum", "trait", "type", "static"];

/// Public items without a doc comment, and doc comments that are too short.
pub fn findings(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        if !source.is_test() {
            check(source, &mut findings);
        }
    }
    findings
}

fn check(source: &Source, findings: &mut Vec<Finding>) {
    let mut comment: Vec<&str> = Vec::new();
    let (mut documented, mut in_attribute) = (false, false);
    let mut offset = 0;
    for (index, raw) in source.text.split('\n').enumerate() {
        let line = raw.trim();
        in_attribute |= line.starts_with("#[");
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text);
            documented = true;
        } else {
            let words: usize = comment.iter().map(|l| l.split_whitespace().count()).sum();
            if (1..WORDS_MIN).contains(&words) && !source.scan.in_test(offset) {
                let message = "a doc comment that repeats the name: delete it or say more";
                findings.push(Finding::at(&source.path, index, message));
            }
            comment.clear();
            if is_public_item(line) {
                if !documented && !source.scan.in_test(offset) {
                    let message = "a public item without a doc comment";
                    findings.push(Finding::at(&source.path, index + 1, message));
                }
                documented = false;
            } else if !in_attribute && !line.starts_with("//") {
                documented = line.starts_with("$(#[") || line.starts_with("#[doc");
            }
            // An attribute may stand on several lines.
            in_attribute &= !line.ends_with(']');
        }
        offset += raw.len() + 1;
    }
}

/// True for a line that starts a public item which needs a doc comment.
fn is_public_item(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("pub ") else {
        return false;
    };
    let mut words = rest.split_whitespace().peekable();
    while let Some(word) = words.next_if(|word| QUALIFIERS.contains(word)) {
        // `pub const NAME` is an item by itself, `pub const fn` a qualified function.
        if word == "const" && words.peek().is_some_and(|next| next.ends_with(':')) {
            return true;
        }
    }
    words.next().is_some_and(|word| KINDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let source = Source::new("crates/a/src/b.rs", text);
        let findings = findings(&[source]);
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn public_item_without_doc_comment_is_reported() {
        let text = "//! A.\n\npub fn a() {}\n/// Says what b is for.\n#[must_use]\npub async fn b() {}\npub const C: u8 = 1;\npub const fn d() {}\npub struct E;\nfn f() {}\npub(crate) fn g() {}\npub mod h;\n";
        assert_eq!(lines(text), [3, 7, 8, 9]);
    }

    #[test]
    fn attribute_on_several_lines_keeps_the_doc_comment() {
        let text = "//! A.\n\n/// Says what a is for.\n#[cfg_attr(\n    test,\n    derive(Debug)\n)]\npub struct A;\npub struct B;\n";
        assert_eq!(lines(text), [9]);
    }

    #[test]
    fn short_doc_comment_is_reported() {
        let text = "//! A.\n\n/// The id of the turn.\npub struct A {\n    /// The id.\n    pub id: u8,\n    pub name: u8,\n}\n";
        assert_eq!(lines(text), [5]);
    }

    #[test]
    fn tests_are_exempt() {
        let text = "//! A.\n\n#[cfg(test)]\nmod tests {\n    /// Short.\n    pub fn a() {}\n}\n";
        assert_eq!(lines(text), [0; 0]);
    }
}
