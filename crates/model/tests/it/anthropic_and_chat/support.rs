//! Recorded and written streams as fixtures, and functions that decode them. The fixtures are files
//! under `tests/fixtures`.

use turnwire_model::VendorDialect;
use turnwire_model::dialect::anthropic::AnthropicDialect;
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;

pub(crate) use crate::decoded::{DecodedStream, decode_pieces, lines, steps};

macro_rules! fixtures {
    ($name:ident, $folder:literal: $($file:literal),* $(,)?) => {
        /// Streams of this dialect, by name.
        pub(crate) const $name: &[(&str, &[u8])] = &[$((
            $file,
            include_bytes!(concat!("../../fixtures/", $folder, "/", $file, ".sse")),
        )),*];
    };
}

fixtures!(ANTHROPIC, "anthropic":
    "recorded_plain", "recorded_tool", "conversation", "thinking", "out_of_order", "unstreamed_input",
    "interleaved", "server_tool", "overloaded",
);
fixtures!(OPENAI_CHAT, "openai_chat":
    "recorded_plain", "recorded_length", "recorded_without_usage", "recorded_tool",
    "conversation", "reasoning", "interleaved", "unstreamed_arguments", "error",
);

/// All fixtures, each with its dialect.
pub(crate) fn all() -> Vec<(&'static dyn VendorDialect, &'static str, &'static [u8])> {
    let with_dialect = |dialect: &'static dyn VendorDialect,
                        fixtures: &'static [(&'static str, &'static [u8])]| {
        fixtures
            .iter()
            .map(move |(name, bytes)| (dialect, *name, *bytes))
    };
    with_dialect(&AnthropicDialect, ANTHROPIC)
        .chain(with_dialect(&OpenAiChatDialect, OPENAI_CHAT))
        .collect()
}

/// The fixture called `name`.
pub(crate) fn fixture(fixtures: &[(&str, &'static [u8])], name: &str) -> &'static [u8] {
    let fixture = fixtures.iter().find(|(listed, _)| *listed == name);
    fixture.expect("a fixture of this name").1
}

/// Decodes a stream that arrives in one piece.
pub(crate) fn decode(dialect: &dyn VendorDialect, bytes: &[u8]) -> DecodedStream {
    decode_pieces(dialect, [bytes])
}
