//! How a connection ends: a closed table of close codes, each with the JSON reason that travels
//! in the close frame and the advice a client should follow.

use serde::Deserialize;

/// What a client should do after a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconnect {
    /// Come back with `since` = the last id; nothing is lost.
    Resume,
    /// Mend what it sends first: the same frames would end the same way.
    Mend,
    /// Stay away; there is nothing to come back to.
    Never,
}

/// Why the server closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Close {
    /// The server is going away.
    Draining,
    /// The client sent a frame that breaks the WebSocket protocol.
    Protocol,
    /// The client sent a binary frame.
    Binary,
    /// The client sent text that is not JSON.
    NotJson,
    /// The client reads more slowly than the session writes.
    TooSlow,
    /// The client did not subscribe in time.
    SubscribeTimeout,
    /// The client left too many pings unanswered.
    PingTimeout,
    /// The session was deleted.
    SessionDeleted,
    /// The client sent a frame over the limit.
    TooBig,
    /// The session's record is damaged.
    Quarantined,
    /// The server could not go on with this connection.
    Internal,
}

/// The most bytes a close frame has for its reason (RFC 6455, 5.5).
pub const REASON_BYTES_MAX: usize = 123;

impl Close {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Draining,
        Self::Protocol,
        Self::Binary,
        Self::NotJson,
        Self::TooSlow,
        Self::SubscribeTimeout,
        Self::PingTimeout,
        Self::SessionDeleted,
        Self::TooBig,
        Self::Quarantined,
        Self::Internal,
    ];

    const fn entry(self) -> (u16, &'static str, &'static str, Reconnect) {
        use Reconnect::{Mend, Never, Resume};
        match self {
            Self::Draining => (1001, "draining", "The server is going away.", Resume),
            Self::Protocol => (
                1002,
                "protocol_error",
                "The frame breaks the WebSocket protocol.",
                Mend,
            ),
            Self::Binary => (1003, "binary", "Frames must be text.", Mend),
            Self::NotJson => (1007, "non_json", "Frames must be JSON.", Mend),
            Self::TooSlow => (
                1008,
                "client_too_slow",
                "Outbound queue overflowed; reconnect with replay.",
                Resume,
            ),
            Self::SubscribeTimeout => (
                1008,
                "subscribe_timeout",
                "No subscribe frame came in time.",
                Resume,
            ),
            Self::PingTimeout => (1008, "ping_timeout", "Pings were not answered.", Resume),
            Self::SessionDeleted => (1008, "session_deleted", "The session was deleted.", Never),
            Self::TooBig => (1009, "oversized", "The frame is over the limit.", Mend),
            Self::Quarantined => (
                1011,
                "session_quarantined",
                "The session's record is damaged.",
                Never,
            ),
            Self::Internal => (1011, "internal", "Something went wrong inside.", Resume),
        }
    }

    /// The WebSocket close code.
    pub const fn code(self) -> u16 {
        self.entry().0
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        self.entry().1
    }

    /// The sentence for it.
    pub const fn message(self) -> &'static str {
        self.entry().2
    }

    /// What the client should do.
    pub const fn reconnect(self) -> Reconnect {
        self.entry().3
    }

    /// The reason of the close frame: `{"code","message"}`, at most `REASON_BYTES_MAX` bytes.
    pub fn reason_json(self) -> String {
        // Names and messages need no escaping; a test holds them to it.
        format!(
            "{{\"code\":\"{}\",\"message\":\"{}\"}}",
            self.name(),
            self.message()
        )
    }

    /// Reads a close frame back; `None` for an end that is not in the table.
    pub fn read(code: u16, reason: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Reason<'a> {
            code: &'a str,
        }
        let reason: Reason<'_> = serde_json::from_str(reason).ok()?;
        Self::ALL
            .into_iter()
            .find(|close| close.code() == code && close.name() == reason.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn s3_093_a_slow_client_is_told_so_in_these_words() {
        assert_eq!(Close::TooSlow.code(), 1008);
        assert_eq!(
            Close::TooSlow.reason_json(),
            "{\"code\":\"client_too_slow\",\
             \"message\":\"Outbound queue overflowed; reconnect with replay.\"}"
        );
    }

    #[test]
    fn every_reason_is_json_that_fits_and_reads_back() {
        for close in Close::ALL {
            let reason = close.reason_json();
            assert!(reason.len() <= REASON_BYTES_MAX, "{reason}");
            let value: Value = serde_json::from_str(&reason).expect("a reason is JSON");
            assert_eq!(
                value,
                json!({"code": close.name(), "message": close.message()})
            );
            assert_eq!(Close::read(close.code(), &reason), Some(close));
        }
        assert_eq!(Close::read(1000, ""), None);
        assert_eq!(Close::read(1001, "{\"code\":\"ping_timeout\"}"), None);
    }

    #[test]
    fn codes_and_advice_are_those_of_the_contract() {
        let table = Close::ALL.map(|c| (c.code(), c.name(), c.reconnect()));
        let expected = [
            (1001, "draining", Reconnect::Resume),
            (1002, "protocol_error", Reconnect::Mend),
            (1003, "binary", Reconnect::Mend),
            (1007, "non_json", Reconnect::Mend),
            (1008, "client_too_slow", Reconnect::Resume),
            (1008, "subscribe_timeout", Reconnect::Resume),
            (1008, "ping_timeout", Reconnect::Resume),
            (1008, "session_deleted", Reconnect::Never),
            (1009, "oversized", Reconnect::Mend),
            (1011, "session_quarantined", Reconnect::Never),
            (1011, "internal", Reconnect::Resume),
        ];
        assert_eq!(table, expected);
    }
}
