//! Decodes streams in pieces, and prints deltas as lines for comparison. All dialect tests share
//! these helpers.

pub(crate) mod message;

use std::collections::VecDeque;

use serde_json::Value;
use turnwire_dial::{SseLimits, SseReader};
use turnwire_model::{Delta, ModelError, SseEvent, VendorDialect};

/// The deltas of a stream, and its error if it failed.
pub(crate) type DecodedStream = (Vec<Delta>, Option<ModelError>);

/// Decodes a stream that arrives in these pieces.
pub(crate) fn decode_pieces<'a>(
    dialect: &dyn VendorDialect,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> DecodedStream {
    let mut sse = SseReader::new(SseLimits::per_event(4 << 20));
    let mut decoder = dialect.decoder();
    let mut out = VecDeque::new();
    for mut piece in pieces {
        while let Some(event) = sse.next_event(&mut piece).expect("a stream of events") {
            if let Err(error) = decoder.step(event, &mut out) {
                return (out.into(), Some(error));
            }
        }
    }
    let error = decoder.end(&mut out).err();
    (out.into(), error)
}

/// Decodes frames without event names.
pub(crate) fn steps<S: AsRef<str>>(dialect: &dyn VendorDialect, frames: &[S]) -> DecodedStream {
    let mut decoder = dialect.decoder();
    let mut out = VecDeque::new();
    for data in frames {
        let frame = SseEvent {
            event: None,
            data: data.as_ref(),
        };
        if let Err(error) = decoder.step(frame, &mut out) {
            return (out.into(), Some(error));
        }
    }
    let error = decoder.end(&mut out).err();
    (out.into(), error)
}

/// The deltas of a stream without error, as lines.
pub(crate) fn lines(decoded: DecodedStream) -> Vec<String> {
    assert_eq!(decoded.1, None, "{:#?}", decoded.0);
    decoded.0.iter().map(line).collect()
}

/// A delta as one line.
pub(crate) fn line(delta: &Delta) -> String {
    match delta {
        Delta::Started { response_id } => format!("begun {response_id}"),
        Delta::ProviderData { block, data } => format!("{block} keep {data}"),
        Delta::Text { block, text } => format!("{block} text {text}"),
        Delta::Thinking {
            block,
            text,
            signature,
        } => match signature {
            None => format!("{block} thinking {text}"),
            Some(signature) => format!("{block} thinking {text}[{signature}]"),
        },
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
        Delta::PartialUsage { .. } => panic!("decoders emit no usage deltas"),
        Delta::Stop { reason, usage } => {
            assert_eq!(usage.cost_usd, 0.0, "decoders set no cost");
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

/// The deltas, as lines, that are emitted after these events.
pub(crate) fn lines_so_far(dialect: &dyn VendorDialect, events: &[Value]) -> Vec<String> {
    let mut decoder = dialect.decoder();
    let mut out = VecDeque::new();
    for event in events {
        let data = event.to_string();
        let frame = SseEvent {
            event: None,
            data: &data,
        };
        decoder.step(frame, &mut out).expect("an event");
    }
    out.iter().map(line).collect()
}
