//! Tools: how those are ended that run as programs.

use super::setting::section::section;
use super::setting::value::number;

section! {
    /// Tools.
    Tool, "tool" {
        /// Time that a program has to end by itself after it was asked to (SIGTERM), before it is
        /// killed with all that it started (S3-074): enough to tidy up. The end of a
        /// turn waits at least 2 s more.
        grace_ms: u64 = "5000", number(0..=300_000);
        /// Programs of process tools that run at once; those that come later wait within the time
        /// of their own call. As many tool servers (MCP) may run as programs beside them. Each may
        /// be as large as its limits allow, so this bounds the machine's load.
        programs_max: usize = "64", number(1..=4_096);
    }
}
