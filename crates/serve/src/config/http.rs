//! What a request may cost before anyone has looked at it.

use super::setting::section::section;
use super::setting::site::{self, Site};
use super::setting::value::number;

section! {
    /// What a request may cost before anyone has looked at it.
    Http, "http" {
        /// Bytes of a body: a very long prompt is 200 kB, so 1 MiB is generous and bounds memory.
        body_max_bytes: usize = "1048576", number(1..=67_108_864);
        /// Time a body may take to arrive, so that a drip of bytes cannot hold a request open.
        body_timeout_ms: u64 = "30000", number(10..=600_000);
        /// Bytes of the request line and headers together; below 8 KiB browsers fail.
        header_max_bytes: usize = "32768", number(8_192..=1_048_576);
        /// Time the headers may take, and how long an idle connection is kept.
        header_timeout_ms: u64 = "10000", number(10..=600_000);
        /// Open connections, WebSockets and chat streams included: at 15 KB each, 10,000 stay under 150 MB.
        connections_max: usize = "10000", number(1..=1_000_000);
        /// Origins of other sites whose pages may call this server from a browser, such as
        /// `http://localhost:3000`, between commas; none unless listed, because requests are not
        /// authenticated.
        cors_origins: Vec<Site> = "", site::list;
    }
}
