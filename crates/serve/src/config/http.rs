//! Limits of requests and connections.

use super::setting::site::{self, SiteOrigin};
use super::setting::{number, section};

section! {
    /// Limits of requests and connections.
    Http, "http" {
        /// Maximum size of a request body: a very long prompt is 200 kB, so 1 MiB is generous and
        /// bounds memory.
        body_max_bytes: usize = "1048576", number(1..=67_108_864);
        /// Maximum size of a list in a response; further items are on the next page. Twice
        /// `http.body_max_bytes`, so that every message that a client can send fits whole; a larger
        /// one is listed without its content.
        answer_max_bytes: usize = "2097152", number(1_048_576..=67_108_864);
        /// Time limit for receiving a request body, so that a slow sender cannot hold a request
        /// open.
        body_timeout_ms: u64 = "30000", number(10..=600_000);
        /// Time limit for writing an answer, for each `http.answer_max_bytes` that it begins; then the
        /// connection is closed. 2 MiB in a minute are 35 KB/s, which slow mobile networks have.
        answer_timeout_ms: u64 = "60000", number(10..=3_600_000);
        /// Maximum size of request line and headers together; below 8 KiB browsers fail.
        header_max_bytes: usize = "32768", number(8_192..=1_048_576);
        /// Time limit for receiving headers, and the idle timeout of a connection.
        header_timeout_ms: u64 = "10000", number(10..=600_000);
        /// Maximum number of open connections, including WebSockets and chat streams: at 12 KB
        /// each while idle, 10,000 stay under 120 MB. A connection with a half-sent head may hold
        /// `http.header_max_bytes`: 330 MB if all do.
        connections_max: usize = "10000", number(1..=1_000_000);
        /// Maximum number of requests being answered and open streams per principal: a quarter of all
        /// connections, and never more than three quarters. The next one gets 429. When all
        /// connections are taken, an idle one is closed for a new one.
        connections_max_per_owner: usize = "2500", number(1..=1_000_000);
        /// Maximum number of bodies above 64 KiB that are being received or sent at the same time. A
        /// body counts once for each `http.answer_max_bytes` that it begins: at 2 MiB, 256 stay under
        /// 512 MiB. The next one gets 429.
        transfers_max: usize = "256", number(1..=1_000_000);
        /// Maximum number of these bodies per principal: a quarter of all, and never more than three
        /// quarters. A principal that does not read its answers gets 429, others do not. A body
        /// that would count more often takes the whole share.
        transfers_max_per_owner: usize = "64", number(1..=1_000_000);
        /// Maximum number of `/healthz`, `/readyz` and `/metrics` requests that are answered at the
        /// same time, apart from all others: some supervisors and collectors ask every few seconds,
        /// and each is answered in milliseconds. At most a quarter of `http.connections_max`. Half
        /// of them per principal; a quarter may be large answers that are being written.
        probes_max: usize = "64", number(1..=1_000_000);
        /// Origins of other sites whose pages may call this server from a browser, such as
        /// `http://localhost:3000`, separated by commas. Default is none: pages of this server alone.
        cors_origins: Vec<SiteOrigin> = "", site::list;
    }
}
