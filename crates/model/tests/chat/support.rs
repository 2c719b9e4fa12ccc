//! Fixtures, streams read in pieces, and deltas as lines that can be compared at a glance.

use std::collections::VecDeque;

use turnwire_model::dialect::anthropic::Anthropic;
use turnwire_model::dialect::openai_chat::OpenAiChat;
use turnwire_model::sse::Sse;
use turnwire_model::{Decoder, Delta, Dialect, Frame, ModelError};

macro_rules! fixtures {
    ($name:ident, $folder:literal: $($file:literal),* $(,)?) => {
        /// The streams of this dialect, by name.
        pub(crate) const $name: &[(&str, &[u8])] = &[$((
            $file,
            include_bytes!(concat!("../fixtures/", $folder, "/", $file, ".sse")),
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

/// What a stream says, and how it failed if it did.
pub(crate) type Told = (Vec<Delta>, Option<ModelError>);

/// A stream that comes in pieces.
pub(crate) fn decode_pieces<'a>(
    dialect: &dyn Dialect,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Told {
    let mut sse = Sse::default();
    let mut decoder = dialect.decoder();
    let mut out = VecDeque::new();
    for mut piece in pieces {
        while let Some(frame) = sse.pull(&mut piece).expect("a stream of events") {
            if let Err(error) = decoder.step(frame, &mut out) {
                return (out.into(), Some(error));
            }
        }
    }
    let error = decoder.end(&mut out).err();
    (out.into(), error)
}

/// A stream that comes whole.
pub(crate) fn decode(dialect: &dyn Dialect, bytes: &[u8]) -> Told {
    decode_pieces(dialect, [bytes])
}

/// Frames without names, one after the other; what comes of them, and the failure.
pub(crate) fn steps(dialect: &dyn Dialect, frames: &[&str]) -> Told {
    let mut decoder: Box<dyn Decoder> = dialect.decoder();
    let mut out = VecDeque::new();
    for data in frames {
        let event = None;
        if let Err(error) = decoder.step(Frame { event, data }, &mut out) {
            return (out.into(), Some(error));
        }
    }
    let error = decoder.end(&mut out).err();
    (out.into(), error)
}

/// The deltas of a stream that ends well, as lines.
pub(crate) fn lines(told: Told) -> Vec<String> {
    assert_eq!(told.1, None, "{:#?}", told.0);
    told.0.iter().map(line).collect()
}

/// A delta in a line.
pub(crate) fn line(delta: &Delta) -> String {
    match delta {
        Delta::Begun { response_id } => format!("begun {response_id}"),
        Delta::Keep { block, data } => format!("{block} keep {data}"),
        Delta::Text { block, text } => format!("{block} text {text}"),
        Delta::Thinking {
            block,
            text,
            signature: None,
        } => format!("{block} thinking {text}"),
        Delta::Thinking {
            block,
            text,
            signature: Some(signature),
        } => format!("{block} thinking {text}[{signature}]"),
        Delta::ToolStart {
            block,
            name,
            provider_id,
        } => format!(
            "{block} tool {name} {}",
            provider_id.as_deref().unwrap_or("-")
        ),
        Delta::ToolInput { block, fragment } => format!("{block} input {fragment}"),
        Delta::ToolEnd { block } => format!("{block} end"),
        Delta::Spent { .. } => panic!("a decoder is asked what was spent"),
        Delta::Stop { reason, usage } => {
            assert_eq!(usage.cost_usd, 0.0, "prices are not the vendor's word");
            format!(
                "stop {reason:?} {}+{}={} reasoning {} cached {}",
                usage.input_tokens,
                usage.output_tokens,
                usage.total_tokens,
                usage.reasoning_tokens,
                usage.cached_tokens
            )
        }
    }
}
