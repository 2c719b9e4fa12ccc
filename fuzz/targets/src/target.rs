//! The table of targets.

use crate::{
    client_frame, cursor, event_record, pack, provider, request_body, sse, store_file, tool_answer,
    upstream,
};

/// A reader of untrusted bytes, with its properties.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name, also of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// The largest input: enough for every part of the format, small enough for thousands of runs a second.
    pub bytes_max: usize,
    run: fn(&[u8]),
}

/// A row of the table.
const fn target(name: &'static str, bytes_max: usize, run: fn(&[u8])) -> Target {
    Target {
        name,
        bytes_max,
        run,
    }
}

impl Target {
    /// From what clients send over the store to what upstreams, tools and authors send.
    pub const ALL: &'static [Self] = &[
        target("cursor", 128, cursor::run),
        target("client_frame", 4_096, client_frame::run),
        target("subscribe", 4_096, client_frame::run_subscribe),
        target("request_body", 4_096, request_body::run),
        target("event_record", 8_192, event_record::run),
        target("delta_cuts", 1_024, event_record::run_cuts),
        target("wal", 8_192, store_file::run_wal),
        target("commit_mark", 128, store_file::run_mark),
        target("sse", 4_096, sse::run),
        target("anthropic", 8_192, provider::run_anthropic),
        target("openai_chat", 8_192, provider::run_openai_chat),
        target("openai_responses", 8_192, provider::run_openai_responses),
        target("gemini", 8_192, provider::run_gemini),
        target("upstream", 8_192, upstream::run_inner),
        target("upstream_chat", 8_192, upstream::run_chat),
        target("mcp", 8_192, tool_answer::run_mcp),
        target("envelope", 4_096, tool_answer::run_envelope),
        target("pack", 16_384, pack::run),
    ];

    /// The target of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|target| target.name == name)
    }

    /// Reads `input`; panics if a property does not hold.
    pub fn run(&self, input: &[u8]) {
        (self.run)(input);
    }
}
