//! From the bytes of an answer to its emissions without a connection, for the fuzz targets. The parts
//! are those of a real answer: the reader of the stream, the decoder of the dialect, the translation.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use turnwire_dial::{SseLimits, SseReader};
use turnwire_event::port::Emission;
use turnwire_event::{IdGenerator, Ulid};

use crate::dialect::UpstreamDialect;
use crate::fault::UpstreamFault;
use crate::inner_event::InnerEvent;
use crate::translation::Translation;

/// Decides what becomes of the text of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSpeaker {
    /// The orchestrator, whose text is streamed as a message.
    Orchestrator,
    /// A sub-agent, whose text is collected.
    SubAgent,
}

/// What an answer became.
#[derive(Debug, PartialEq)]
pub struct AnswerReading {
    /// The emissions, with the ends of tools that the upstream left open.
    pub emissions: Vec<Emission>,
    /// The collected text of a sub-agent.
    pub text: String,
    /// The fault that ended the answer; `None` if the upstream ended it.
    pub fault: Option<UpstreamFault>,
}

/// Counts up from 1, so that a reading depends on its bytes alone.
#[derive(Default)]
struct CountingIds(AtomicU64);

impl IdGenerator for CountingIds {
    fn ulid(&self) -> Ulid {
        Ulid(u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1)
    }
}

/// Reads an answer that arrives in `chunks`, to its end or its first fault.
pub fn read_answer(
    dialect: &UpstreamDialect,
    speaker: AnswerSpeaker,
    limits: SseLimits,
    chunks: &[&[u8]],
) -> AnswerReading {
    let ids: Arc<dyn IdGenerator> = Arc::new(CountingIds::default());
    let mut translation = match speaker {
        AnswerSpeaker::Orchestrator => Translation::streaming(ids, "relay:agent", "someone"),
        AnswerSpeaker::SubAgent => Translation::collecting(ids, "agent", "someone"),
    };
    let mut emissions = Vec::new();
    let end = read_events(dialect, limits, chunks, |event| {
        emissions.extend(translation.apply(event)?);
        Ok(())
    });
    emissions.extend(translation.close_tools());
    AnswerReading {
        emissions,
        text: translation.take_text(),
        fault: end.err(),
    }
}

fn read_events(
    dialect: &UpstreamDialect,
    limits: SseLimits,
    chunks: &[&[u8]],
    mut apply: impl FnMut(InnerEvent) -> Result<(), UpstreamFault>,
) -> Result<(), UpstreamFault> {
    let mut reader = SseReader::new(limits);
    let mut decoder = dialect.decoder();
    let mut pending = VecDeque::new();
    for chunk in chunks {
        let mut unread = *chunk;
        while let Some(block) = reader.next_event(&mut unread)? {
            decoder.step(block, &mut pending)?;
            for event in pending.drain(..) {
                match event {
                    InnerEvent::Completed
                    | InnerEvent::Cancelled(_)
                    | InnerEvent::Error { is_final: true, .. } => return Ok(()),
                    InnerEvent::Sentinel => return Err(UpstreamFault::Incomplete),
                    event => apply(event)?,
                }
            }
        }
    }
    decoder.end(&mut pending)?;
    pending.drain(..).try_for_each(apply)
}
