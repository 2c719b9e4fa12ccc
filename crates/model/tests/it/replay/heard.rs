//! What a vendor's stream says, as the house keeps it and as lines.

use std::collections::VecDeque;

use turnwire_dial::{SseLimits, SseReader};
use turnwire_event::{ContentBlock, ToolUseId};
use turnwire_model::Said;

use crate::replay::vendor::Vendor;
use crate::told::message;

/// What a stream says; tool uses are numbered from `first`.
pub(crate) fn heard(vendor: &dyn Vendor, stream: &str, first: u128) -> Said {
    let mut sse = SseReader::new(SseLimits::per_event(4 << 20));
    let mut decoder = vendor.dialect().decoder();
    let mut deltas = VecDeque::new();
    let mut bytes = stream.as_bytes();
    while let Some(event) = sse.next_event(&mut bytes).expect("a stream of events") {
        decoder.step(event.into(), &mut deltas).expect("a frame");
    }
    decoder.end(&mut deltas).expect("an end");
    message::heard(vendor.name(), deltas.make_contiguous(), first)
}

/// What a message says, a line a block, without ids and seals.
pub(crate) fn spoken(said: &Said) -> Vec<String> {
    let lines = said.content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => (!text.is_empty()).then(|| format!("text {text}")),
        ContentBlock::Thinking { text, .. } => Some(format!("thinking {text}")),
        ContentBlock::ToolUse { name, input, .. } => Some(format!("tool {name} {input}")),
        ContentBlock::ToolResult { .. }
        | ContentBlock::Component { .. }
        | ContentBlock::Data { .. } => None,
    });
    lines.collect()
}

/// The tools a message asks for, and for which city.
pub(crate) fn uses(said: &Said) -> Vec<(ToolUseId, String)> {
    let uses = said.content.iter().filter_map(|block| match block {
        ContentBlock::ToolUse { id, input, .. } => {
            Some((*id, input["city"].as_str().expect("a city").to_owned()))
        }
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolResult { .. }
        | ContentBlock::Component { .. }
        | ContentBlock::Data { .. } => None,
    });
    uses.collect()
}
