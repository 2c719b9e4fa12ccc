//! Real models: what an adapter costs a delta, what a turn adds to a provider's first token, and a
//! hundred streams at once.

mod adapter;
mod clock;
mod first;
mod streams;

use std::io;

use super::Bench;
use crate::report::Section;

/// Measures it.
pub fn run(bench: &Bench) -> io::Result<Section> {
    let mut section = Section {
        title: "Models: providers' streams",
        text: format!(
            "*Adapter*: an answer of thousands of pieces of text and a call of a tool, in each \
             vendor's own frames (about as many bytes as each row says), read by `model::Sse` and \
             the dialect's `Decoder` into deltas, a frame at a time or in pieces of 16 KiB; *whole \
             call*: the same through `model::Remote` with its timeouts, on a transport that has the \
             bytes. Beside it the same bytes read with `sse-stream` and `serde_json` into derived \
             structs of the fields that matter, which forgive nothing and keep no state; every \
             piece is there already, so neither waits. Nanoseconds a delta, pinned to the first \
             core. *Added to the first token*: the release binary, durability full, one agent, a \
             provider in a process of its own that speaks Chat Completions, answers every request \
             at once and then says {} words, one every {} ms; each word holds the time at which it \
             was written, on the machine's clock. The delay of a token is from there until the \
             client (`reqwest`, `sse-stream`, `serde_json`) has parsed it out of the `text` frame of \
             `POST /chat/stream`, or, as the reference, out of the provider's own stream. What is \
             committed before the provider is asked is not in it. Added is what Turnwire's delay is \
             above the median delay of the reference in the same round. *Streams*: {} such turns \
             at once, each of {} tokens a second, for {} s; the first and the last third of the \
             time in which all of them speak. Turnwire is on the first core; the provider and the \
             client share the last one, with Turnwire as without.",
            first::WORDS,
            first::EVERY_US / 1_000,
            streams::STREAMS,
            1_000_000 / streams::EVERY_US,
            streams::SECONDS,
        ),
        columns: vec![
            "figure",
            "Turnwire",
            "reference",
            "ratio",
            "the reference is",
        ],
        rows: Vec::new(),
        aims: Vec::new(),
        peers: None,
        others: 0.0,
    };
    adapter::measure(bench, &mut section)?;
    first::measure(bench, &mut section)?;
    streams::measure(bench, &mut section)?;
    Ok(section)
}
