//! Traces: the spans of turns, made from their events, and their export over OTLP/HTTP.
//!
//! ```text
//! events, commits, ──▶ Tracer ── OpenTurn ──▶ FinishedSpan ──▶ SpanQueue ──▶ Exporter ──▶ collector
//! measured spans         │ Sampler              protobuf        bounded       batches, retries
//!                        ╰ a turn that is not sampled has no state here
//! ```
//! A span is encoded when it ends. From then on it is bytes in a bounded queue: what does not fit, or is
//! refused, is dropped and counted, and no turn waits. See docs/decisions/0039.

#![warn(missing_docs)]

mod sampler;
mod options;
mod protobuf;
mod span;
mod export_request;
mod drops;
mod queue;
mod exporter;
mod open_turn;
mod tracer;
mod delivery;

pub use delivery::{DeliverySpan, DeliveryWire};
pub use exporter::{Exporter, ExporterError};
pub use options::{OtlpOptions, TraceSettings};
pub use sampler::Sampler;
pub use tracer::Tracer;
