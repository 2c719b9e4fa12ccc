//! Recorded and written streams as fixtures, and functions that decode them. The fixtures are files
//! under `tests/fixtures`.

use turnwire_model::VendorDialect;
use turnwire_model::dialect::gemini::GeminiDialect;
use turnwire_model::dialect::openai_responses::OpenAiResponsesDialect;

pub(crate) use crate::decoded::{DecodedStream, decode_pieces as decode, lines, steps};

macro_rules! fixtures {
    ($name:ident, $folder:literal: $($file:literal),* $(,)?) => {
        /// Streams of this dialect, by name.
        pub(crate) const $name: &[(&str, &str)] = &[$((
            $file,
            include_str!(concat!("../../fixtures/", $folder, "/", $file, ".sse")),
        )),*];
    };
}

fixtures!(RESPONSES, "openai_responses":
    "recorded_plain", "conversation", "reasoning", "interleaved", "out_of_order", "unstreamed_items",
    "hosted_tool_and_refusal", "without_indices", "failed",
);
fixtures!(GEMINI, "gemini":
    "conversation", "thinking", "signed_text", "opaque_parts", "without_ids", "usage_after_end",
    "blocked", "error",
);

/// All fixtures, each with its dialect.
pub(crate) fn all() -> Vec<(&'static dyn VendorDialect, &'static str, &'static str)> {
    let with_dialect = |dialect: &'static dyn VendorDialect,
                        fixtures: &'static [(&'static str, &'static str)]| {
        let tagged = move |(name, text): &(&'static str, &'static str)| (dialect, *name, *text);
        fixtures.iter().map(tagged)
    };
    let responses = with_dialect(&OpenAiResponsesDialect, RESPONSES);
    responses
        .chain(with_dialect(&GeminiDialect, GEMINI))
        .collect()
}

/// The fixture called `name`.
pub(crate) fn fixture(fixtures: &[(&str, &'static str)], name: &str) -> &'static str {
    let fixture = fixtures.iter().find(|(listed, _)| *listed == name);
    fixture.expect("a fixture of this name").1
}
