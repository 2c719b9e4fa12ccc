//! The readers of untrusted bytes, each with the properties that must hold for any bytes. A target
//! panics when one does not: that is what a fuzzer looks for.
//!
//! ```text
//! fuzz/corpus/NAME ─▶ Mutator ─▶ Target::run        in the tests, some seconds
//!                 └─▶ libFuzzer ─▶ Target::run      `cargo xtask fuzz`, as long as it is told
//! ```
//! The properties are stated here and not in the readers, so that a reader cannot agree with its own
//! mistake: what is read twice is the same, what is cut into other pieces is the same, what one crate
//! accepts another can write.

mod chunk;
mod cursor;
mod client_frame;
mod request_body;
mod event_record;
mod store_file;
mod sse;
mod provider;
mod upstream;
mod tool_answer;
mod pack;
mod target;
pub mod mutator;

pub use target::Target;

/// Runs the target `name` on the beginning of `input`, for the programs of `fuzz/fuzz_targets`.
pub fn run(name: &str, input: &[u8]) {
    let target = Target::named(name).expect("the programs have the names of targets");
    target.run(&input[..input.len().min(target.bytes_max)]);
}
