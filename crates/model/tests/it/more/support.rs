//! Fixtures, and what comes of them.

use turnwire_model::Dialect;
use turnwire_model::dialect::gemini::Gemini;
use turnwire_model::dialect::openai_responses::OpenAiResponses;

pub(crate) use crate::told::{Told, decode_pieces as decode, lines, steps};

macro_rules! fixtures {
    ($name:ident, $folder:literal: $($file:literal),* $(,)?) => {
        /// The streams of this dialect, by name.
        pub(crate) const $name: &[(&str, &str)] = &[$((
            $file,
            include_str!(concat!("../../fixtures/", $folder, "/", $file, ".sse")),
        )),*];
    };
}

fixtures!(RESPONSES, "openai_responses":
    "recorded_plain", "conversation", "reasoning", "interleaved", "out_of_order", "whole_items",
    "hosted_tool_and_refusal", "without_places", "failed",
);
fixtures!(GEMINI, "gemini":
    "conversation", "thinking", "signed_words", "unread_parts", "without_ids", "usage_behind",
    "blocked", "error",
);

/// Both dialects with their fixtures.
pub(crate) fn all() -> Vec<(&'static dyn Dialect, &'static str, &'static str)> {
    let of = |dialect: &'static dyn Dialect, fixtures: &'static [(&'static str, &'static str)]| {
        let with_dialect =
            move |(name, text): &(&'static str, &'static str)| (dialect, *name, *text);
        fixtures.iter().map(with_dialect)
    };
    let responses = of(&OpenAiResponses, RESPONSES);
    responses.chain(of(&Gemini, GEMINI)).collect()
}

/// The fixture of this name.
pub(crate) fn fixture(fixtures: &[(&str, &'static str)], name: &str) -> &'static str {
    let found = fixtures.iter().find(|(known, _)| *known == name);
    found.expect("a fixture of this name").1
}
