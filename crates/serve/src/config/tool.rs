//! Tools: how programs end, and how many calls run at the same time, in all and for one owner.

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
        /// Maximum number of process tools that run in parallel for one owner: a quarter of all, so
        /// that a busy owner leaves programs to others. A free place goes to the waiting owner with
        /// the fewest running programs.
        programs_per_owner_max: usize = "16", number(1..=4_096);
        /// Maximum size of the folder of a session, on disk; a program that exceeds it is ended. A
        /// checked-out repository fits, and twenty full folders fit on a small disk.
        folder_bytes_max: u64 = "1073741824", number(4_096..=1_099_511_627_776);
        /// Maximum number of files and folders in the folder of a session: the folder is measured
        /// while a program runs, and this many take a few hundredths of a second.
        folder_entries_max: u64 = "20000", number(1..=1_000_000);
        /// Maximum number of calls that one MCP server handles in parallel; further calls wait
        /// within their own time limit. Enough for many turns, and few enough not to overload a
        /// server.
        mcp_calls_max: usize = "64", number(1..=4_096);
        /// Maximum number of parallel calls of one owner to one MCP server: a quarter of all, so that
        /// a busy owner leaves calls to others.
        mcp_calls_per_owner_max: usize = "16", number(1..=4_096);
        /// Maximum number of parallel calls to all data services; further calls wait within their
        /// own time limit. A call of a cancelled turn counts until its service has answered.
        service_calls_max: usize = "256", number(1..=4_096);
        /// Maximum number of parallel calls of one owner to data services: a quarter of all.
        service_calls_per_owner_max: usize = "64", number(1..=4_096);
        /// Maximum number of calls that wait for a program, for one MCP server, or for data services,
        /// for each of the three. Each holds a turn open; the next call fails at once.
        waiting_max: usize = "1024", number(1..=1_000_000);
        /// The same for one owner: eight calls in each of sixteen parallel turns.
        waiting_per_owner_max: usize = "128", number(1..=1_000_000);
    }
}
