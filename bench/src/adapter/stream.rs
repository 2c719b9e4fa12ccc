//! Long answers as vendors stream them, in the pieces they arrive in.

use bytes::Bytes;
use turnwire_pack::DialectName;
use turnwire_testkit::provider::{Dialect, MessagePart, ModelMessage, ProviderAnswer};

/// Bytes of a large piece: what a TLS record holds at most, and so what a busy reader finds.
const LARGE: usize = 16 * 1024;

/// The repeated output of a model: pieces as tokenizers cut them, some with characters that JSON escapes
/// and some with more than one byte a character.
const PIECES: [&str; 16] = [
    "Two", " tents", " are", " on", " offer", " this", " week", ":\n\n", "- ", "**", "Alp", "\"",
    " für", " 49", ".90 €", " each,",
];

/// How an answer is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceCut {
    /// One frame a piece, as from a model that is read as it speaks.
    Frames,
    /// Pieces of 16 KiB, wherever that cuts a frame.
    Large,
}

impl PieceCut {
    /// Both ways to cut an answer.
    pub const ALL: [Self; 2] = [Self::Frames, Self::Large];

    /// The label in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frames => "a frame a piece",
            Self::Large => "16 KiB a piece",
        }
    }
}

/// An answer of `words` pieces of text and one call of a tool.
pub(super) fn body(dialect: DialectName, words: usize) -> Bytes {
    let text = MessagePart::text(PIECES.into_iter().cycle().take(words));
    let input =
        serde_json::json!({ "query": "tent", "max_price": 50, "sort": ["price", "rating"] });
    let call = MessagePart::call("call_1", "search_offers", &input);
    let answer = ProviderAnswer::message(ModelMessage::new([text, call]));
    answer.bytes(fake(dialect)).into()
}

/// What the fakes call a dialect.
fn fake(dialect: DialectName) -> Dialect {
    match dialect {
        DialectName::Anthropic => Dialect::Anthropic,
        DialectName::OpenaiChat => Dialect::Chat,
        DialectName::OpenaiResponses => Dialect::Responses,
        DialectName::Gemini => Dialect::Gemini,
    }
}

/// The pieces of a body.
pub(super) fn pieces(body: &Bytes, cut: PieceCut) -> Vec<Bytes> {
    let mut remaining = body.clone();
    let mut pieces = Vec::new();
    while !remaining.is_empty() {
        let len = match cut {
            PieceCut::Frames => frame_len(&remaining),
            PieceCut::Large => LARGE.min(remaining.len()),
        };
        pieces.push(remaining.split_to(len));
    }
    pieces
}

/// Up to behind the first empty line; everything if there is none.
fn frame_len(bytes: &[u8]) -> usize {
    let ends = [&b"\n\n"[..], b"\r\n\r\n"];
    let frame_ends = ends.into_iter().filter_map(|end| {
        let at = bytes.windows(end.len()).position(|here| here == end)?;
        Some(at + end.len())
    });
    frame_ends.min().unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_concatenate_to_the_answer() {
        for dialect in DialectName::ALL {
            let body = body(dialect, 300);
            for cut in PieceCut::ALL {
                assert_eq!(pieces(&body, cut).concat(), body, "{dialect:?}, {cut:?}");
            }
            let frames = pieces(&body, PieceCut::Frames);
            assert!(frames.len() > 300, "{dialect:?}: {}", frames.len());
            assert!(frames.iter().all(|frame| frame.ends_with(b"\n")));
        }
    }
}
