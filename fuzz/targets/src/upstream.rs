//! The answers of relayed agents, in both dialects: the same emissions however the bytes are cut, and
//! every tool that begins ends once.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnwire_dial::SseLimits;
use turnwire_event::Body;
use turnwire_relay::fuzzing::{AnswerReading, AnswerSpeaker, read_answer};
use turnwire_relay::{TypeMap, UpstreamDialect, UpstreamFault};

use crate::chunk::{chunks, planned};

/// Small enough that an input can exceed them.
const LIMITS: SseLimits = SseLimits {
    line_bytes_max: 4_096,
    event_bytes_max: 4_096,
    stream_bytes_max: 32_768,
};

/// An answer in the inner vocabulary.
pub(crate) fn run_inner(input: &[u8]) {
    run(
        &UpstreamDialect::Turnwire(Arc::new(TypeMap::default())),
        input,
    );
}

/// An answer of a Chat Completions API.
pub(crate) fn run_chat(input: &[u8]) {
    let model = "agent".to_owned();
    run(&UpstreamDialect::OpenAiChat { model }, input);
}

fn run(dialect: &UpstreamDialect, input: &[u8]) {
    let (plan, stream) = planned(input);
    for speaker in [AnswerSpeaker::Orchestrator, AnswerSpeaker::SubAgent] {
        let whole = read(dialect, speaker, &[stream]);
        let cut = read(dialect, speaker, &chunks(stream, plan.max(1)));
        let too_large =
            [&whole, &cut].map(|reading| reading.fault == Some(UpstreamFault::TooLarge));
        if too_large == [false; 2] {
            assert_eq!(cut, whole, "the bytes in other pieces are another answer");
        }
        let mut open = BTreeMap::new();
        for emission in &whole.emissions {
            match &emission.body {
                Body::ToolCalled(called) => {
                    let again = open.insert(called.tool_use_id, true);
                    assert_eq!(again, None, "a tool is called twice");
                }
                Body::ToolCompleted(end) => close(&mut open, end.tool_use_id),
                Body::ToolFailed(end) => close(&mut open, end.tool_use_id),
                _ => {}
            }
        }
        assert!(open.values().all(|is_open| !is_open), "a tool is left open");
        assert!(whole.text.len() <= 65_536);
    }
}

/// The reading of an answer without the times that its tools took.
fn read(dialect: &UpstreamDialect, speaker: AnswerSpeaker, chunks: &[&[u8]]) -> AnswerReading {
    let mut reading = read_answer(dialect, speaker, LIMITS, chunks);
    for emission in &mut reading.emissions {
        if let Body::ToolCompleted(end) = &mut emission.body {
            end.duration_ms = 0;
        }
    }
    reading
}

fn close<I: Ord>(open: &mut BTreeMap<I, bool>, tool: I) {
    assert_eq!(
        open.insert(tool, false),
        Some(true),
        "a tool ends that is not open"
    );
}
