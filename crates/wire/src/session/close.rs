//! The close codes of the session wire: a closed table of codes, each with the JSON reason of the
//! close frame and advice on how the client should reconnect.

use serde::Deserialize;

/// The action that a client should take after a [`SessionCloseReason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconnectAdvice {
    /// Reconnect with `since` set to the last id; no event is lost.
    Resume,
    /// Fix the frames it sends first: the same frames would be closed again.
    FixFirst,
    /// Do not reconnect: the session is not available any more.
    Never,
}

impl ReconnectAdvice {
    /// The advice in documents for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::FixFirst => "fix_first",
            Self::Never => "never",
        }
    }
}

/// The largest number of bytes of the reason in a close frame (RFC 6455, section 5.5).
pub const REASON_BYTES_MAX: usize = 123;

macro_rules! close_reasons {
    ($($(#[$doc:meta])* $variant:ident: $code:literal, $name:literal, $message:literal, $advice:ident;)+) => {
        /// The reason why the server closed a connection.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SessionCloseReason { $($(#[$doc])* $variant),+ }

        impl SessionCloseReason {
            /// Every reason, in the order of its code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The WebSocket close code, which several reasons may share.
            pub const fn code(self) -> u16 {
                match self { $(Self::$variant => $code),+ }
            }

            /// The stable code in the JSON reason, unique in this table.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The sentence in the JSON reason.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message),+ }
            }

            /// The advice for the client.
            pub const fn reconnect(self) -> ReconnectAdvice {
                match self { $(Self::$variant => ReconnectAdvice::$advice),+ }
            }
        }
    };
}

close_reasons! {
    /// The server is shutting down.
    Draining: 1001, "draining", "The server is going away.", Resume;
    /// The client sent a frame that breaks the WebSocket protocol.
    Protocol: 1002, "protocol_error", "The frame breaks the WebSocket protocol.", FixFirst;
    /// The client sent a binary frame.
    Binary: 1003, "binary", "Frames must be text.", FixFirst;
    /// The client sent text that is not JSON.
    NotJson: 1007, "non_json", "Frames must be JSON.", FixFirst;
    /// The client reads more slowly than the session produces events.
    TooSlow: 1008, "client_too_slow", "Outbound queue overflowed; reconnect with replay.", Resume;
    /// The client did not subscribe in time.
    SubscribeTimeout: 1008, "subscribe_timeout", "No subscribe frame came in time.", Resume;
    /// The client did not answer several pings in a row.
    PingTimeout: 1008, "ping_timeout", "Pings were not answered.", Resume;
    /// The identity that the connection was opened or renewed with is over.
    IdentityExpired: 1008, "identity_expired", "The token has expired; reconnect with a new one.", Resume;
    /// The token of the client was revoked.
    IdentityRevoked: 1008, "identity_revoked", "The token was revoked; reconnect with another one.", Resume;
    /// The session was deleted.
    SessionDeleted: 1008, "session_deleted", "The session was deleted.", Never;
    /// The client sent a frame above the size limit.
    FrameTooLarge: 1009, "oversized", "The frame is over the limit.", FixFirst;
    /// The stored bytes of the session do not match its hash chain.
    Quarantined: 1011, "session_quarantined", "The session's record is damaged.", Never;
    /// The server failed to serve this connection.
    Internal: 1011, "internal", "Something went wrong inside.", Resume;
    /// The owner has as many reads of the store waiting as allowed.
    Busy: 1013, "busy", "Too many of your reads wait; reconnect in a moment.", Resume;
    /// A quota of streams or of replay bytes is used up.
    QuotaExceeded: 1013, "quota_exceeded", "Your quota of streams or replays is used up; reconnect later.", Resume;
}

impl SessionCloseReason {
    /// The reason of the close frame: `{"code","message"}`, at most [`REASON_BYTES_MAX`] bytes.
    pub fn reason_json(self) -> String {
        // Names and messages need no JSON escaping; a test checks that.
        format!(
            "{{\"code\":\"{}\",\"message\":\"{}\"}}",
            self.name(),
            self.message()
        )
    }

    /// Parses a received close frame; `None` for a close that is not in this table.
    pub fn parse(code: u16, reason: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct CloseReason<'a> {
            code: &'a str,
        }
        let reason: CloseReason<'_> = serde_json::from_str(reason).ok()?;
        let mut all = Self::ALL.iter().copied();
        all.find(|close| close.code() == code && close.name() == reason.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    // S3-093
    #[test]
    fn slow_client_close_has_the_contract_text() {
        assert_eq!(SessionCloseReason::TooSlow.code(), 1008);
        assert_eq!(
            SessionCloseReason::TooSlow.reason_json(),
            "{\"code\":\"client_too_slow\",\
             \"message\":\"Outbound queue overflowed; reconnect with replay.\"}"
        );
    }

    #[test]
    fn every_reason_is_short_json_and_parses_back() {
        for &close in SessionCloseReason::ALL {
            let reason = close.reason_json();
            assert!(reason.len() <= REASON_BYTES_MAX, "{reason}");
            let value: Value = serde_json::from_str(&reason).expect("a reason is JSON");
            assert_eq!(
                value,
                json!({"code": close.name(), "message": close.message()})
            );
            assert_eq!(
                SessionCloseReason::parse(close.code(), &reason),
                Some(close)
            );
        }
        assert_eq!(SessionCloseReason::parse(1000, ""), None);
        assert_eq!(
            SessionCloseReason::parse(1001, "{\"code\":\"ping_timeout\"}"),
            None
        );
    }

    #[test]
    fn close_codes_and_advice_match_the_contract() {
        let rows = SessionCloseReason::ALL.iter();
        let table: Vec<_> = rows.map(|c| (c.code(), c.name(), c.reconnect())).collect();
        let expected = [
            (1001, "draining", ReconnectAdvice::Resume),
            (1002, "protocol_error", ReconnectAdvice::FixFirst),
            (1003, "binary", ReconnectAdvice::FixFirst),
            (1007, "non_json", ReconnectAdvice::FixFirst),
            (1008, "client_too_slow", ReconnectAdvice::Resume),
            (1008, "subscribe_timeout", ReconnectAdvice::Resume),
            (1008, "ping_timeout", ReconnectAdvice::Resume),
            (1008, "identity_expired", ReconnectAdvice::Resume),
            (1008, "identity_revoked", ReconnectAdvice::Resume),
            (1008, "session_deleted", ReconnectAdvice::Never),
            (1009, "oversized", ReconnectAdvice::FixFirst),
            (1011, "session_quarantined", ReconnectAdvice::Never),
            (1011, "internal", ReconnectAdvice::Resume),
            (1013, "busy", ReconnectAdvice::Resume),
            (1013, "quota_exceeded", ReconnectAdvice::Resume),
        ];
        assert_eq!(table, expected);
    }
}
