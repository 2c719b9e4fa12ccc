//! Where a server is: `http://host:port`, read strictly. TLS is a later issue, so `https` is
//! refused with that reason instead of failing somewhere below.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The port a server listens on unless told otherwise.
pub const DEFAULT_PORT: u16 = 8421;

/// A server's host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// What to connect to, and what the `Host` header says: `host:port`.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |why: &str| Error::Address(format!("`{text}` is not a server address: {why}"));
        if text.starts_with("https://") {
            return Err(bad("TLS is not there yet, use http:// on this machine"));
        }
        let rest = text
            .strip_prefix("http://")
            .ok_or_else(|| bad("it must begin with http://"))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#', '@']) {
            return Err(bad("it must be http://host:port and nothing more"));
        }
        // The colons of an IPv6 address stand inside its brackets.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse().map_err(|_| bad("the port is not a number"))?;
                (host, port)
            }
            _ => (rest, DEFAULT_PORT),
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(bad("the host is missing"));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_strictly() {
        let good = [
            ("http://127.0.0.1:8421", "http://127.0.0.1:8421"),
            ("http://localhost", "http://localhost:8421"),
            ("http://localhost:80/", "http://localhost:80"),
            ("http://[::1]:9", "http://[::1]:9"),
            ("http://[::1]", "http://[::1]:8421"),
        ];
        for (text, address) in good {
            assert_eq!(text.parse::<Address>().expect(text).to_string(), address);
        }
        for bad in [
            "",
            "localhost:8421",
            "https://localhost",
            "http://",
            "http://:1",
            "http://h:x",
            "http://h/sessions",
            "http://u@h",
        ] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }
}
