//! The streams of model providers, by dialect: the deltas keep the promises that agents rely on.

use std::collections::BTreeMap;

use turnwire_dial::{SseLimits, SseReader};
use turnwire_event::StopReason;
use turnwire_model::dialect::DeltaQueue;
use turnwire_model::dialect::anthropic::AnthropicDialect;
use turnwire_model::dialect::gemini::GeminiDialect;
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;
use turnwire_model::dialect::openai_responses::OpenAiResponsesDialect;
use turnwire_model::{Delta, ErrorResponse, VendorDialect};

use crate::chunk::{chunks, planned};

/// A stream of the Messages API.
pub(crate) fn run_anthropic(input: &[u8]) {
    run(&AnthropicDialect, input);
}

/// A stream of the Chat Completions API.
pub(crate) fn run_openai_chat(input: &[u8]) {
    run(&OpenAiChatDialect, input);
}

/// A stream of the Responses API.
pub(crate) fn run_openai_responses(input: &[u8]) {
    run(&OpenAiResponsesDialect, input);
}

/// A stream of the Gemini API.
pub(crate) fn run_gemini(input: &[u8]) {
    run(&GeminiDialect, input);
}

/// What a block is, and whether it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    /// Known by its provider data alone so far.
    Unknown,
    Text,
    Thinking,
    /// A tool use, and whether some input of it has come.
    Tool {
        open: bool,
        has_input: bool,
    },
}

/// A tool use that has begun.
const BEGUN: BlockKind = BlockKind::Tool {
    open: true,
    has_input: false,
};

fn run(dialect: &dyn VendorDialect, input: &[u8]) {
    let (plan, stream) = planned(input);
    let (deltas, completed) = read(dialect, &chunks(stream, plan));
    check(&deltas, completed);
    // The same bytes are also the body of an error.
    let status = [400, 401, 403, 404, 413, 422, 429, 500, 503, 529];
    let _ = dialect.classify_response(ErrorResponse {
        status: status[usize::from(plan) % status.len()],
        retry_after: None,
        body: stream,
    });
}

/// The deltas of a stream, and whether it ended as an answer ends. What follows the end is ignored.
fn read(dialect: &dyn VendorDialect, chunks: &[&[u8]]) -> (Vec<Delta>, bool) {
    let mut reader = SseReader::new(SseLimits::per_event(1 << 20));
    let mut decoder = dialect.decoder();
    let mut out = DeltaQueue::new();
    for chunk in chunks {
        let mut unread = *chunk;
        loop {
            let has_ended = matches!(out.back(), Some(Delta::Stop { .. }));
            match reader.next_event(&mut unread) {
                Ok(None) => break,
                Ok(Some(frame)) => match decoder.step(frame, &mut out) {
                    Ok(()) => {}
                    Err(error) => {
                        assert!(!has_ended, "a frame after the end fails: {error}");
                        return (out.into(), false);
                    }
                },
                Err(_) => return (out.into(), has_ended),
            }
        }
    }
    let ended = decoder.end(&mut out).is_ok();
    let _ = (decoder.usage_so_far(), decoder.cache_written_tokens());
    (out.into(), ended)
}

/// The promises of [`Delta`].
fn check(deltas: &[Delta], completed: bool) {
    let mut blocks: BTreeMap<u32, BlockKind> = BTreeMap::new();
    let stops = deltas
        .iter()
        .filter(|delta| matches!(delta, Delta::Stop { .. }));
    assert_eq!(
        stops.count() == 1,
        completed,
        "an answer stops once: {deltas:?}"
    );
    for (index, delta) in deltas.iter().enumerate() {
        let mut block = |number: u32, kind: BlockKind| {
            let next = blocks.len() as u32;
            assert!(
                number <= next,
                "block {number} before block {next}: {deltas:?}"
            );
            let known = blocks.entry(number).or_insert(kind);
            if *known == BlockKind::Unknown {
                *known = kind;
            }
            assert!(
                kind == BlockKind::Unknown || *known == kind,
                "block {number} is {known:?} and {kind:?}: {deltas:?}"
            );
        };
        match delta {
            Delta::Started { response_id } => {
                assert!(index == 0 && !response_id.is_empty(), "{deltas:?}");
            }
            Delta::Text { block: number, .. } => block(*number, BlockKind::Text),
            Delta::Thinking { block: number, .. } => block(*number, BlockKind::Thinking),
            Delta::ProviderData { block: number, .. } => block(*number, BlockKind::Unknown),
            Delta::ToolStart { block: number, .. } => {
                let kind = blocks.insert(*number, BEGUN);
                assert!(
                    matches!(kind, None | Some(BlockKind::Unknown)),
                    "block {number} starts as a tool after it was {kind:?}: {deltas:?}"
                );
            }
            Delta::ToolInput { block: number, .. } => {
                let kind = BlockKind::Tool {
                    open: true,
                    has_input: true,
                };
                let before = blocks.insert(*number, kind);
                assert!(
                    matches!(before, Some(BlockKind::Tool { open: true, .. })),
                    "{before:?} gets input: {deltas:?}"
                );
            }
            Delta::ToolEnd { block: number } => {
                let kind = BlockKind::Tool {
                    open: false,
                    has_input: true,
                };
                let before = blocks.insert(*number, kind);
                assert!(
                    matches!(before, Some(BlockKind::Tool { open: true, .. })),
                    "{before:?} ends: {deltas:?}"
                );
            }
            Delta::PartialUsage { .. } => {}
            Delta::Stop { .. } => assert_eq!(index + 1, deltas.len(), "{deltas:?}"),
        }
    }
    let Some(Delta::Stop { reason, .. }) = deltas.last() else {
        return;
    };
    for (number, kind) in &blocks {
        // An answer that was cut before the input of a tool came leaves the tool open.
        let is_cut = *kind == BEGUN && *reason != StopReason::ToolUse;
        assert!(
            is_cut || !matches!(kind, BlockKind::Tool { open: true, .. }),
            "a complete answer leaves no tool open, but {number}: {deltas:?}"
        );
    }
}
