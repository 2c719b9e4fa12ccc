//! Agents that run elsewhere: their address where no pack names it, and the bounds of a call. A pack may
//! set other times for an upstream of its own.

use crate::config::setting::{number, optional_text, section};

section! {
    /// Agents that run elsewhere.
    Relay, "relay" {
        /// URL of the agent that answers every turn: `turnwire relay --upstream`. A pack may name it as
        /// `${TURNWIRE_UPSTREAM}`; without a pack the server has no other agent.
        upstream: Option<String> = "", optional_text;
        /// Model or agent to ask the upstream for, if it is a Chat Completions API:
        /// `turnwire relay --model`. Without it the upstream speaks the inner vocabulary.
        model: Option<String> = "", optional_text;
        /// Time limit for connecting to an upstream: many times what a working network needs.
        connect_ms: u64 = "5000", number(1..=600_000);
        /// Time limit between two events of an upstream, after which its turn is cancelled with
        /// `IDLE_TIMEOUT`; comments do not count (D-13).
        idle_ms: u64 = "60000", number(10..=86_400_000);
        /// Maximum size of one event of an upstream: a whole list of items fits, and the largest frame
        /// of the chat wire has 16 MiB.
        event_bytes_max: usize = "1048576", number(1_024..=16_777_216);
        /// Maximum size of a complete answer of an upstream: some hundred thousand tokens, one by one.
        stream_bytes_max: u64 = "67108864", number(1_024..=1_073_741_824);
        /// Maximum size of the text and reasoning of an answer of an upstream: ten times what a model
        /// writes at most. It is kept in memory until it is stored, several times.
        text_bytes_max: usize = "4194304", number(1_024..=67_108_864);
    }
}
