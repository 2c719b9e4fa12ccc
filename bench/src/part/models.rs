//! Real models: what an adapter costs a delta, what a turn adds to a provider's first token, and a
//! hundred streams at once.

mod adapter;
mod clock;
mod first;
mod streams;

use std::io;

use super::{BenchConfig, paired_section};
use crate::report::ReportSection;

/// Runs the part and returns its section of the report.
pub fn run(bench: &BenchConfig) -> io::Result<ReportSection> {
    let mut section = paired_section(
        "Models: providers' streams",
        format!(
            "*Adapter*: an answer of thousands of pieces of text and a call of a tool, in each \
             vendor's own frames, read by `dial::SseReader` and the dialect's `Decoder` into deltas, a \
             frame at a time or in pieces of 16 KiB; *whole call*: the same through `model::Remote` \
             with its timeouts, on a transport that has the bytes. Beside it the same bytes read \
             with `sse-stream` and `serde_json` into derived structs of the fields that matter, \
             which forgive nothing and keep no state; every piece is there already, so nobody \
             waits. Nanoseconds a delta, on the first core. *First token*: the release binary, \
             durability full, an agent that asks a provider in a process of its own, which speaks \
             Chat Completions: it says {} words, one every {} ms, each with the time at which it is \
             written, on the machine's clock. From its write: until the client (`reqwest`, \
             `sse-stream`, `serde_json`) has parsed it out of the `text` frame of `POST \
             /chat/stream`, or, as the reference, out of the provider's own stream; from the post: \
             from before the request is sent until then. Added is what Turnwire's figure is above \
             the median of the reference in the same round. A turn's first events are made durable \
             while the provider is already asked, and no token is told before they are: a provider \
             that thinks {} ms leaves time for that, one that answers at once does not, so that its \
             first token waits for the disk. *Streams*: {} such turns at once, each of {} tokens a \
             second, begun one after the other; after {} s, when the ring of newest events of every \
             session is full, {} s are looked at, the first and the last third of them. Turnwire is \
             on the first core; the provider and the client share the last one, with Turnwire as \
             without.",
            first::WORDS,
            first::EVERY_US / 1_000,
            first::THINK_MS,
            streams::STREAMS,
            1_000_000 / streams::EVERY_US,
            streams::SETTLE_S,
            streams::SECONDS,
        ),
    );
    adapter::measure(bench, &mut section)?;
    first::measure(bench, &mut section)?;
    streams::measure(bench, &mut section)?;
    Ok(section)
}
