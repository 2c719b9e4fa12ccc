//! What an adapter costs a delta: bytes of a vendor's stream in, deltas out, beside bare parsing of
//! the same bytes.
//!
//! Three readers of one answer: ours as far as the dialect goes (`SseReader` and `Decoder`), ours as a
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

pub use ready::Call;
pub use stream::Cut;

use crate::stat::median;

/// A delta may cost so much more than the reference, and so many nanoseconds.
pub const RATIO_MAX: f64 = 2.5;
/// The nanoseconds.
pub const NANOS_MAX: f64 = 5_000.0;

/// Rounds that medians are taken of; within one the readers follow each other.
const ROUNDS: usize = 5;

/// How much to do.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Args {
    /// Pieces of text in an answer.
    #[arg(long)]
    pub words: usize,
    /// How often an answer is read in a round.
    #[arg(long)]
    pub passes: u32,
}

/// What one stream costs, in nanoseconds a delta.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// The dialect, as files call it.
    pub dialect: String,
    /// How it was cut.
    pub cut: String,
    /// Bytes of the stream for each delta.
    pub bytes: f64,
    /// Our reader and decoder.
    pub ours: f64,
    pub whole: f64,
    pub bare: f64,
}

/// An answer in its pieces.
pub struct Answer {
    dialect: DialectName,
    pieces: Vec<Bytes>,
}

impl Answer {
    /// An answer of `words` pieces of text and a call of a tool.
    pub fn new(dialect: DialectName, cut: Cut, words: usize) -> Self {
        let body = stream::body(dialect, words);
        Self {
            dialect,
            pieces: stream::pieces(&body, cut),
        }
    }

    /// Reads it as a turn does, but for waiting: gives every delta to `said`.
    #[inline]
    pub fn decode(&self, mut said: impl FnMut(Delta)) -> io::Result<()> {
        let mut sse = SseReader::new(SseLimits::per_event(4 << 20));
        let mut decoder = turnwire_model::models::dialect_for(self.dialect).decoder();
        let mut out = VecDeque::new();
        for piece in &self.pieces {
            let piece = piece.clone();
            let mut input = &piece[..];
            while let Some(event) = sse.next_event(&mut input).map_err(io::Error::other)? {
                decoder
                    .step(event.into(), &mut out)
                    .map_err(io::Error::other)?;
                out.drain(..).for_each(&mut said);
            }
        }
        decoder.end(&mut out).map_err(io::Error::other)
    }

    /// Reads it with the reference: gives every piece of text to `said`.
    #[inline]
    pub fn parse(&self, said: impl FnMut(String)) -> io::Result<()> {
        match bare::read(self.dialect, &self.pieces, said) {
            0 => Ok(()),
            unread => Err(io::Error::other(format!("{unread} frames were not read"))),
        }
    }

    /// The same as a call of a model.
    pub fn call(&self) -> Call {
        Call::new(self.dialect, self.pieces.clone())
    }

    fn cost(&self, runtime: &Runtime, cut: Cut, passes: u32) -> io::Result<Cost> {
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
        let [mut ours, mut whole, mut bare] = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            bare.push(nanos(Box::new(|| {
                self.parse(|text| drop(black_box(text)))
            }))?);
            ours.push(nanos(Box::new(|| {
                self.decode(|delta| drop(black_box(delta)))
            }))?);
            whole.push(nanos(Box::new(|| {
                runtime.block_on(call.hear(|delta| drop(black_box(delta))))
            }))?);
        }
        let bytes: usize = self.pieces.iter().map(Bytes::len).sum();
        Ok(Cost {
            dialect: self.dialect.as_str().to_owned(),
            cut: cut.name().to_owned(),
            bytes: bytes as f64 / f64::from(deltas),
            ours: median(&ours),
            whole: median(&whole),
            bare: median(&bare),
        })
    }
}

/// Every dialect, cut in both ways.
pub fn run(args: Args) -> io::Result<Vec<Cost>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let mut costs = Vec::new();
    for cut in Cut::ALL {
        for dialect in DialectName::ALL {
            let answer = Answer::new(dialect, cut, args.words);
            costs.push(answer.cost(&runtime, cut, args.passes)?);
        }
    }
    Ok(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that a delta says.
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
            for cut in Cut::ALL {
                let answer = Answer::new(dialect, cut, 200);
                let [mut ours, mut whole, mut bare] = [const { String::new() }; 3];
                let mut deltas = (0, 0);
                answer
                    .decode(|delta| {
                        deltas.0 += 1;
                        ours += &words(delta);
                    })
                    .expect("an answer");
                let call = answer.call();
                let cost = call.hear(|delta| {
                    deltas.1 += 1;
                    whole += &words(delta);
                });
                cost.await.expect("an answer");
                answer.parse(|text| bare += &text).expect("frames");
                assert!(ours.starts_with("Two tents are"), "{dialect:?}: {ours}");
                assert_eq!((&whole, &bare), (&ours, &ours), "{dialect:?}, {cut:?}");
                assert_eq!(deltas.0, deltas.1, "{dialect:?}, {cut:?}");
            }
        }
    }
}
