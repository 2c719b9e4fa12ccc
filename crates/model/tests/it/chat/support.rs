//! Fixtures, and what comes of them.

use turnwire_model::Dialect;
use turnwire_model::dialect::anthropic::Anthropic;
use turnwire_model::dialect::openai_chat::OpenAiChat;

pub(crate) use crate::told::{Told, decode_pieces, lines, steps};

macro_rules! fixtures {
    ($name:ident, $folder:literal: $($file:literal),* $(,)?) => {
        /// The streams of this dialect, by name.
        pub(crate) const $name: &[(&str, &[u8])] = &[$((
            $file,
            include_bytes!(concat!("../../fixtures/", $folder, "/", $file, ".sse")),
        )),*];
    };
}

fixtures!(ANTHROPIC, "anthropic":
    "recorded_plain", "recorded_tool", "conversation", "thinking", "out_of_order", "whole_input",
    "interleaved", "server_tool", "overloaded",
);
fixtures!(OPENAI_CHAT, "openai_chat":
    "recorded_plain", "recorded_length", "recorded_without_usage", "recorded_tool",
    "conversation", "reasoning", "interleaved", "whole_arguments", "error",
);

/// Both dialects with their fixtures.
pub(crate) fn all() -> Vec<(&'static dyn Dialect, &'static str, &'static [u8])> {
    let of = |dialect: &'static dyn Dialect, fixtures: &'static [(&'static str, &'static [u8])]| {
        fixtures
            .iter()
            .map(move |(name, bytes)| (dialect, *name, *bytes))
    };
    of(&Anthropic, ANTHROPIC)
        .chain(of(&OpenAiChat, OPENAI_CHAT))
        .collect()
}

/// The fixture of this name.
pub(crate) fn fixture(fixtures: &[(&str, &'static [u8])], name: &str) -> &'static [u8] {
    let found = fixtures.iter().find(|(known, _)| *known == name);
    found.expect("a fixture of this name").1
}

/// A stream that comes whole.
pub(crate) fn decode(dialect: &dyn Dialect, bytes: &[u8]) -> Told {
    decode_pieces(dialect, [bytes])
}
