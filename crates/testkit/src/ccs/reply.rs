//! What a data service answers: bytes, after a while, at a pace, and whether the connection
//! stays.

use std::time::Duration;

use serde_json::{Value, json};

/// One answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) bytes: Vec<u8>,
    pub(super) delay: Duration,
    /// So many bytes at a time, so long between them.
    pub(super) pace: Option<(usize, Duration)>,
    stays: bool,
}

impl Reply {
    /// An envelope.
    pub fn envelope(body: &Value) -> Self {
        Self::http("200 OK", &[], &body.to_string())
    }

    /// A refusal as the contract has it: 400 `missing_principal`, 403 `principal_mismatch`.
    pub fn refusal(status: u16, error: &str) -> Self {
        let body = json!({ "error": error }).to_string();
        Self::http(&format!("{status} Refused"), &[], &body)
    }

    /// An answer with a status line, more headers and a body.
    pub fn http(status: &str, headers: &[&str], body: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
        head += &format!("content-length: {}\r\n", body.len());
        for header in headers {
            head += &format!("{header}\r\n");
        }
        Self {
            stays: true,
            ..Self::raw(format!("{head}\r\n{body}").into_bytes())
        }
    }

    /// Bytes as they are, then the end of the connection.
    pub fn raw(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            delay: Duration::ZERO,
            pace: None,
            stays: false,
        }
    }

    /// No answer: the connection ends.
    pub fn hang_up() -> Self {
        Self::raw(Vec::new())
    }

    /// No answer for a minute, longer than anyone waits.
    pub fn silence() -> Self {
        Self::hang_up().after(60_000)
    }

    /// The same after a while.
    #[must_use]
    pub fn after(mut self, ms: u64) -> Self {
        self.delay = Duration::from_millis(ms);
        self
    }

    /// The same in pieces of `bytes` with `ms` between them.
    #[must_use]
    pub fn slowly(mut self, bytes: usize, ms: u64) -> Self {
        self.pace = Some((bytes.max(1), Duration::from_millis(ms)));
        self
    }

    /// Whether the connection is there for another request afterwards.
    pub(super) fn stays(&self) -> bool {
        self.stays
    }
}
