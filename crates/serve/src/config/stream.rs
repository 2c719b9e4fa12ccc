//! Streams of both wires: how much of the past a client is sent, how far it may fall behind, and
//! when it counts as gone.

use super::setting::{number, section};

section! {
    /// Streams of both wires.
    Stream, "stream" {
        /// Messages in a snapshot (S3-029); clients read older ones by REST.
        snapshot_messages: usize = "50", number(1..=1_000);
        /// Maximum size of a snapshot: fewer messages if they do not fit. What a person reads of a
        /// conversation at once is far below 1 MiB, and it waits in memory for a slow client.
        snapshot_bytes: usize = "1048576", number(1_048_576..=67_108_864);
        /// Maximum number of replayed events; a client further behind needs a snapshot (S3-037).
        replay_max: u64 = "10000", number(1..=1_000_000);
        /// Maximum lag of a connection while its socket is blocked, in events (S3-092): about half
        /// a minute of one answer.
        queue_max: usize = "1000", number(1..=1_000_000);
        /// Maximum number of workers whose events one connection carries (S3-087): a turn has at
        /// most 8 by default, and each costs a connection about 1 kB. Further ones are omitted.
        workers_max: usize = "64", number(1..=1_024);
        /// Idle time after which the server sends a ping (S3-042).
        ping_ms: u64 = "30000", number(10..=3_600_000);
        /// Unanswered pings after which the server closes the connection (S3-043).
        ping_misses: u32 = "3", number(1..=100);
        /// Idle time after which a chat stream gets a comment, so that no proxy closes it (D-14).
        heartbeat_ms: u64 = "15000", number(10..=3_600_000);
        /// Reconnect delay sent to chat clients, randomised up to twice the value, so that clients
        /// cut together do not reconnect together.
        retry_ms: u32 = "1000", number(1..=3_600_000);
        /// Maximum number of open chat streams per principal: a person has a handful of tabs, a
        /// service account some hundred turns.
        chat_streams_max: usize = "256", number(1..=1_000_000);
        /// Time limit for the first subscribe of a connection (D-40).
        subscribe_wait_ms: u64 = "10000", number(10..=600_000);
        /// Time limit of one blocked write before the socket is closed; a live client takes
        /// milliseconds.
        write_deadline_ms: u64 = "10000", number(10..=600_000);
        /// Events kept in memory per session; older ones are read from the log.
        ring_events: usize = "4096", number(16..=1_048_576);
        /// Bytes of the events kept in memory per session.
        ring_bytes: usize = "4194304", number(65_536..=1_073_741_824);
        /// Bytes of the events and frames kept in memory by all sessions together: 64 sessions at
        /// their own limit, or 256 kB for each of 1,024 running turns. Above three quarters, events
        /// of sessions that nobody watches are evicted first; clients read them from the log.
        rings_bytes: usize = "268435456", number(1_048_576..=1_099_511_627_776);
        /// Size of the frames that wait for one connection's socket, replayed or live: with the
        /// send buffer half a megabyte for a client that stops reading. One frame may be larger.
        pending_bytes: usize = "262144", number(16_384..=16_777_216);
        /// Maximum size of one frame from a client; a filter that names every type is 2 kB.
        frame_in_max_bytes: usize = "65536", number(1_024..=16_777_216);
        /// Size of the kernel's send buffer per connection: the memory that a frozen client can
        /// hold.
        send_buffer_bytes: u32 = "262144", number(4_096..=16_777_216);
        /// Lifetime of an attach token (D-39).
        token_ttl_ms: u64 = "60000", number(10..=3_600_000);
        /// Maximum number of unused attach tokens: 200 bytes each, so 20 MB.
        tokens_max: usize = "100000", number(1..=10_000_000);
        /// Maximum number of unused attach tokens per principal: one hundredth of all, and more than
        /// a client that connects at once ever has. The next one gets 429.
        tokens_max_per_owner: usize = "1000", number(1..=10_000_000);
    }
}
