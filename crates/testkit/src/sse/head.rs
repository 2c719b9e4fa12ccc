//! The head of an answer, read from the raw socket.

use turnwire_event::{ResponseId, SessionId, TurnId};

/// A status and headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// Reads the lines before the empty one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix("\r\n\r\n")?.split("\r\n");
        let status = lines.next()?.strip_prefix("HTTP/1.1 ")?;
        let status = status.split(' ').next()?.parse().ok()?;
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        Some(Self {
            status,
            headers: headers.collect::<Option<_>>()?,
        })
    }

    /// A header's text; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// The session it names.
    pub fn session(&self) -> Option<SessionId> {
        self.header("x-session-id").parse().ok()
    }

    /// The turn it names.
    pub fn turn(&self) -> Option<TurnId> {
        let response: ResponseId = self.header("x-response-id").parse().ok()?;
        Some(response.into())
    }
}

#[cfg(test)]
mod tests {
    use super::Head;

    #[test]
    fn response_head_parses_and_malformed_is_rejected() {
        let head = Head::read("HTTP/1.1 200 OK\r\nA: b\r\nX-Session-Id: x\r\n\r\n").expect("read");
        assert_eq!((head.status, head.header("a")), (200, "b"));
        assert_eq!((head.session(), head.header("c")), (None, ""));
        for bad in [
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.0 200 OK\r\n\r\n",
            "HTTP/1.1 200\r\nx\r\n\r\n",
        ] {
            assert_eq!(Head::read(bad), None, "{bad}");
        }
    }
}
