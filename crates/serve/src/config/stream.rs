//! Streams of both wires: how much of the past a client is sent, how far it may fall behind, and when
//! it counts as gone.

use super::setting::section::section;
use super::setting::value::number;

section! {
    /// Streams of both wires.
    Stream, "stream" {
        /// Messages in a snapshot (S3-029); older ones are read by REST.
        snapshot_messages: usize = "50", number(1..=1_000);
        /// Events that are replayed; a client further behind takes a snapshot (S3-037).
        replay_max: u64 = "10000", number(1..=1_000_000);
        /// Events a connection may be behind while its socket is blocked (S3-092): about half a
        /// minute of one answer.
        queue_max: usize = "1000", number(1..=1_000_000);
        /// Workers whose events one connection carries (S3-087): a turn has 8 at most unless its
        /// pack says otherwise, and each costs a connection about 1 kB. Later ones are left out.
        workers_max: usize = "64", number(1..=1_024);
        /// Silence after which the server pings (S3-042).
        ping_ms: u64 = "30000", number(10..=3_600_000);
        /// Unanswered pings after which it closes (S3-043).
        ping_misses: u32 = "3", number(1..=100);
        /// Silence after which a chat stream gets a comment, so that nothing on the way takes it
        /// for dead (D-14).
        heartbeat_ms: u64 = "15000", number(10..=3_600_000);
        /// How long a client that lost its chat stream is told to wait, up to twice that, so
        /// that those cut together do not come back together.
        retry_ms: u32 = "1000", number(1..=3_600_000);
        /// Chat streams one principal may have open: a person has a handful of tabs, a service
        /// account some hundred turns.
        chat_streams_max: usize = "256", number(1..=1_000_000);
        /// Time a client has to subscribe (D-40).
        subscribe_wait_ms: u64 = "10000", number(10..=600_000);
        /// Time one write may be stuck before the socket is cut; a live client takes
        /// milliseconds.
        write_deadline_ms: u64 = "10000", number(10..=600_000);
        /// Released events kept in memory a session; behind them the store is read.
        ring_events: usize = "4096", number(16..=1_048_576);
        /// Bytes of them.
        ring_bytes: usize = "4194304", number(65_536..=1_073_741_824);
        /// Bytes of one frame a client may send; a filter that names every type is 2 kB.
        frame_in_max_bytes: usize = "65536", number(1_024..=16_777_216);
        /// The kernel's send buffer of a connection: what a frozen client can hold.
        send_buffer_bytes: u32 = "262144", number(4_096..=16_777_216);
        /// How long an attach token is good for (D-39).
        token_ttl_ms: u64 = "60000", number(10..=3_600_000);
    }
}
