//! The reference: `sse-stream`, and `serde_json` into derived structs.
//!
//! It keeps no state, tells no blocks apart and notices no broken end.

use std::convert::Infallible;
use std::hint::black_box;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use sse_stream::SseByteStream;
use turnwire_pack::DialectName;

use super::wire::{Chat, Gemini, Messages, Responses};

/// Reads a whole answer and gives its pieces of text to `said`; how many frames could not be read.
pub(super) fn read(dialect: DialectName, pieces: &[Bytes], mut said: impl FnMut(String)) -> u64 {
    let pieces = pieces.iter().cloned().map(Ok::<_, Infallible>);
    let mut events = SseByteStream::new(stream::iter(pieces));
    let mut unread = 0;
    // Every piece is there already, so the next event always is, and no runtime is needed.
    while let Some(Some(event)) = events.next().now_or_never() {
        let data = event.ok().and_then(|event| event.data).unwrap_or_default();
        if data == "[DONE]" {
            continue;
        }
        match frame(dialect, &data) {
            Ok(words) => words.into_iter().for_each(&mut said),
            Err(_) => unread += 1,
        }
    }
    unread
}

/// The piece of text in a frame.
fn frame(dialect: DialectName, data: &str) -> serde_json::Result<Option<String>> {
    Ok(match dialect {
        DialectName::Anthropic => {
            let event = black_box(serde_json::from_str::<Messages<'_>>(data)?);
            event.delta.and_then(|delta| delta.text)
        }
        DialectName::OpenaiChat => {
            let chunk = black_box(serde_json::from_str::<Chat<'_>>(data)?);
            let first = chunk.choices.into_iter().next();
            first.and_then(|choice| choice.delta.content)
        }
        DialectName::OpenaiResponses => {
            let event = black_box(serde_json::from_str::<Responses<'_>>(data)?);
            let is_text = event.kind == "response.output_text.delta";
            event.delta.filter(|_| is_text)
        }
        DialectName::Gemini => {
            let chunk = black_box(serde_json::from_str::<Gemini<'_>>(data)?);
            let first = chunk.candidates.into_iter().next();
            let part = first.and_then(|candidate| candidate.content.parts.into_iter().next());
            part.and_then(|part| part.text)
        }
    })
}
