//! Models of remote providers: time limits, size limits and retries. A pack may set other times and
//! attempts for a provider of its own.

use std::path::PathBuf;

use super::setting::{number, optional_path, section};

section! {
    /// Models of remote providers.
    Model, "model" {
        /// Time limit for connecting to a provider: many times what a working network needs.
        connect_ms: u64 = "5000", number(1..=600_000);
        /// Time limit for the first byte of an answer: some models think for a minute.
        first_byte_ms: u64 = "60000", number(1..=600_000);
        /// Time limit between two chunks of an answer.
        idle_ms: u64 = "60000", number(1..=600_000);
        /// Time limit between two parts of an answer: comments and pings keep a call open for this
        /// long and no longer. Models that think in silence send them for a minute or two. Never
        /// less than the time limit between two chunks.
        silence_ms: u64 = "120000", number(1..=600_000);
        /// Time limit of a complete answer: nobody reads one that takes five minutes.
        total_ms: u64 = "300000", number(1..=600_000);
        /// Maximum size of one event of an answer: a hundred thousand tokens at once still fit.
        frame_bytes_max: usize = "4194304", number(1_024..=67_108_864);
        /// Maximum size of a complete answer on the wire: some hundred thousand tokens, one by one.
        call_bytes_max: u64 = "67108864", number(1_024..=1_073_741_824);
        /// Attempts per model call that fails before its first output, including the first: what
        /// three attempts do not solve rarely takes only seconds.
        retry_attempts: u32 = "3", number(1..=10);
        /// Maximum pause before the second attempt; doubles with each further attempt.
        retry_base_ms: u64 = "500", number(1..=60_000);
        /// Upper bound of the retry pause.
        retry_max_ms: u64 = "8000", number(1..=600_000);
        /// File that records provider streams as a cassette, call by call, without keys and
        /// requests. It contains what a provider repeats of a request in its answer (Responses
        /// repeats the instructions).
        record: Option<PathBuf> = "", optional_path;
        /// Replay speed of cassettes, in percent of the recorded delays: 100 is real time, 0 does
        /// not wait.
        cassette_pace_percent: u32 = "100", number(0..=10_000);
        /// Speed of scripted models, in percent of the pauses under `pace` in a script: 100 is that
        /// of the script, 0 does not wait. `delay_ms` and `pause_ms` of steps are kept.
        script_pace_percent: u32 = "100", number(0..=10_000);
    }
}
