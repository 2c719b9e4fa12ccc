//! Tools: how programs end, and how many may run.

use super::setting::{number, section};

section! {
    /// Settings of all tools.
    Tool, "tool" {
        /// Grace period of a program between SIGTERM and SIGKILL of everything it started (S3-074):
        /// enough to clean up. The end of a turn waits at least 2 s longer.
        grace_ms: u64 = "5000", number(0..=300_000);
        /// Maximum number of process tools that run in parallel; further calls wait within their
        /// own time limit. The same number of MCP servers may run as programs beside them. Each may
        /// use as much as its limits allow, so this bounds the machine's load.
        programs_max: usize = "64", number(1..=4_096);
    }
}
