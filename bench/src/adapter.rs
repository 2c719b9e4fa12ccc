//! The cost of an adapter per delta: bytes of a vendor's stream in, deltas out, compared with bare
//! parsing of the same bytes.
//!
//! Three readers of one answer: the dialect part of the adapter (`SseReader` and `Decoder`), the adapter as a
//! turn has it (`Remote` with its timeouts, on a transport that has the bytes), and the reference.

mod wire;
mod bare;
mod ready;
mod stream;

use std::collections::VecDeque;
use std::hint::black_box;
use std::io;
use std::time::Instant;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use turnwire_dial::{SseLimits, SseReader};
use turnwire_model::Delta;
use turnwire_pack::DialectName;

pub use ready::ReadyCall;
pub use stream::PieceCut;

use crate::stat::median;

/// The maximum cost of a delta as a multiple of the reference.
pub const RATIO_MAX: f64 = 2.5;
/// The maximum cost of a delta in nanoseconds.
pub const NANOS_MAX: f64 = 5_000.0;

/// Rounds that medians are taken of; within one the readers follow each other.
const ROUNDS: usize = 5;

/// Command-line arguments of this role.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Args {
    /// Pieces of text in an answer.
    #[arg(long)]
    pub words: usize,
    /// How often an answer is read in a round.
    #[arg(long)]
    pub passes: u32,
}

/// The cost of one stream in nanoseconds per delta.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeltaCost {
    /// The dialect, as files call it.
    pub dialect: String,
    /// How the stream was cut into pieces.
    pub cut: String,
    /// Bytes of the stream for each delta.
    pub bytes: f64,
    /// Our reader and decoder.
    pub decoder: f64,
    pub whole: f64,
    pub bare: f64,
}

/// A vendor's answer as pieces of bytes.
pub struct RecordedAnswer {
    dialect: DialectName,
    pieces: Vec<Bytes>,
}

impl RecordedAnswer {
    /// An answer of `words` pieces of text and a call of a tool.
    pub fn new(dialect: DialectName, cut: PieceCut, words: usize) -> Self {
        let body = stream::body(dialect, words);
        Self {
            dialect,
            pieces: stream::pieces(&body, cut),
        }
    }

    /// Reads the answer as a turn does, without waiting; passes every delta to `said`.
    #[inline]
    pub fn decode(&self, mut said: impl FnMut(Delta)) -> io::Result<()> {
        let mut sse = SseReader::new(SseLimits::per_event(4 << 20));
        let mut decoder = turnwire_model::models::dialect_for(self.dialect).decoder();
        let mut out = VecDeque::new();
        for piece in &self.pieces {
            let piece = piece.clone();
            let mut input = &piece[..];
            while let Some(event) = sse.next_event(&mut input).map_err(io::Error::other)? {
                decoder.step(event, &mut out).map_err(io::Error::other)?;
                out.drain(..).for_each(&mut said);
            }
        }
        decoder.end(&mut out).map_err(io::Error::other)
    }

    /// Reads the answer with the reference; passes every piece of text to `said`.
    #[inline]
    pub fn parse(&self, said: impl FnMut(String)) -> io::Result<()> {
        match bare::read(self.dialect, &self.pieces, said) {
            0 => Ok(()),
            unread => Err(io::Error::other(format!("{unread} frames were not read"))),
        }
    }

    /// The answer as a model call.
    pub fn call(&self) -> ReadyCall {
        ReadyCall::new(self.dialect, self.pieces.clone())
    }

    fn cost(&self, runtime: &Runtime, cut: PieceCut, passes: u32) -> io::Result<DeltaCost> {
        let mut deltas = 0;
        self.decode(|_| deltas += 1)?;
        let call = self.call();
        let nanos = |mut pass: Box<dyn FnMut() -> io::Result<()> + '_>| {
            pass()?;
            let began = Instant::now();
            (0..passes).try_for_each(|_| pass())?;
            let spent = began.elapsed().as_nanos() as f64;
            io::Result::Ok(spent / (f64::from(passes) * f64::from(deltas)))
        };
        let [mut decoder, mut whole, mut bare] = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            bare.push(nanos(Box::new(|| {
                self.parse(|text| drop(black_box(text)))
            }))?);
            decoder.push(nanos(Box::new(|| {
                self.decode(|delta| drop(black_box(delta)))
            }))?);
            whole.push(nanos(Box::new(|| {
                runtime.block_on(call.hear(|delta| drop(black_box(delta))))
            }))?);
        }
        let bytes: usize = self.pieces.iter().map(Bytes::len).sum();
        Ok(DeltaCost {
            dialect: self.dialect.as_str().to_owned(),
            cut: cut.name().to_owned(),
            bytes: bytes as f64 / f64::from(deltas),
            decoder: median(&decoder),
            whole: median(&whole),
            bare: median(&bare),
        })
    }
}

/// Every dialect, cut in both ways.
pub fn run(args: Args) -> io::Result<Vec<DeltaCost>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let mut costs = Vec::new();
    for cut in PieceCut::ALL {
        for dialect in DialectName::ALL {
            let answer = RecordedAnswer::new(dialect, cut, args.words);
            costs.push(answer.cost(&runtime, cut, args.passes)?);
        }
    }
    Ok(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a delta.
    fn words(delta: Delta) -> String {
        match delta {
            Delta::Text { text, .. } => text,
            Delta::Started { .. }
            | Delta::ProviderData { .. }
            | Delta::Thinking { .. }
            | Delta::ToolStart { .. }
            | Delta::ToolInput { .. }
            | Delta::ToolEnd { .. }
            | Delta::PartialUsage { .. }
            | Delta::Stop { .. } => String::new(),
        }
    }

    #[tokio::test]
    async fn all_three_readers_decode_the_same_text() {
        for dialect in DialectName::ALL {
            for cut in PieceCut::ALL {
                let answer = RecordedAnswer::new(dialect, cut, 200);
                let [mut decoder, mut whole, mut bare] = [const { String::new() }; 3];
                let mut deltas = (0, 0);
                answer
                    .decode(|delta| {
                        deltas.0 += 1;
                        decoder += &words(delta);
                    })
                    .expect("an answer");
                let call = answer.call();
                let cost = call.hear(|delta| {
                    // The call alone reports its usage before its end.
                    deltas.1 += usize::from(!matches!(delta, Delta::PartialUsage { .. }));
                    whole += &words(delta);
                });
                cost.await.expect("an answer");
                answer.parse(|text| bare += &text).expect("frames");
                assert!(
                    decoder.starts_with("Two tents are"),
                    "{dialect:?}: {decoder}"
                );
                assert_eq!(
                    (&whole, &bare),
                    (&decoder, &decoder),
                    "{dialect:?}, {cut:?}"
                );
                assert_eq!(deltas.0, deltas.1, "{dialect:?}, {cut:?}");
            }
        }
    }
}
