//! Models that somebody else runs: how long one is waited for, how much it may say, how often it is
//! asked again. A pack may say other times and tries for a provider of its own.

use std::path::PathBuf;

use super::setting::section::section;
use super::setting::value::{number, path};

section! {
    /// Models that somebody else runs.
    Model, "model" {
        /// Time until there is a connection to a provider: what a working network takes, many
        /// times over.
        connect_ms: u64 = "5000", number(1..=600_000);
        /// Time until the first byte of an answer: models think for a minute before the first
        /// word.
        first_byte_ms: u64 = "60000", number(1..=600_000);
        /// Silence between two pieces of an answer after which it has failed.
        idle_ms: u64 = "60000", number(1..=600_000);
        /// Time of a whole answer: one that takes five minutes is read by nobody.
        total_ms: u64 = "300000", number(1..=600_000);
        /// Bytes of one event of an answer: a hundred thousand tokens at once still fit.
        frame_bytes_max: usize = "4194304", number(1_024..=67_108_864);
        /// Bytes of a whole answer, its form included: some hundred thousand tokens, one by one.
        call_bytes_max: u64 = "67108864", number(1_024..=1_073_741_824);
        /// Calls of a model that fails before it says anything, the first among them: what has not
        /// passed after three is seldom a matter of seconds.
        retry_attempts: u32 = "3", number(1..=10);
        /// The longest pause before the second call; it doubles with each one more.
        retry_base_ms: u64 = "500", number(1..=60_000);
        /// The longest pause of all.
        retry_max_ms: u64 = "8000", number(1..=600_000);
        /// A file to which what providers stream is written as a cassette, call by call, without
        /// keys and without requests; what a provider repeats of a request in its answer is in it
        /// (Responses repeats the standing instruction).
        record: Option<PathBuf> = "", path;
        /// How long a cassette waits before each piece, in hundredths of the time it took when it
        /// was recorded: 100 is real time, 0 does not wait.
        cassette_pace_percent: u32 = "100", number(0..=10_000);
    }
}
