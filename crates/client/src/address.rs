//! The address of a server, `http://host:port`, parsed strictly. TLS is not supported yet, so
//! `https` is rejected with that reason.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The port of a server that is started without settings.
pub const DEFAULT_PORT: u16 = 8421;

/// The host and port of a server; parsed from `http://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    host: String,
    port: u16,
}

impl ServerAddress {
    /// The target of the TCP connection and the value of the `Host` header: `host:port`.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

impl FromStr for ServerAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid =
            |reason: &str| Error::Address(format!("`{text}` is not a server address: {reason}"));
        if text.starts_with("https://") {
            return Err(invalid("TLS is not supported, use http://"));
        }
        let authority = text
            .strip_prefix("http://")
            .ok_or_else(|| invalid("it must begin with http://"))?;
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        if authority.contains(['/', '?', '#', '@']) {
            return Err(invalid("it must be http://host:port and nothing more"));
        }
        // The colons of an IPv6 address are inside its brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port
                    .parse()
                    .map_err(|_| invalid("the port is not a number"))?;
                (host, port)
            }
            _ => (authority, DEFAULT_PORT),
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(invalid("the host is missing"));
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
    fn addresses_are_parsed_strictly() {
        let good = [
            ("http://127.0.0.1:8421", "http://127.0.0.1:8421"),
            ("http://localhost", "http://localhost:8421"),
            ("http://localhost:80/", "http://localhost:80"),
            ("http://[::1]:9", "http://[::1]:9"),
            ("http://[::1]", "http://[::1]:8421"),
        ];
        for (text, address) in good {
            assert_eq!(
                text.parse::<ServerAddress>().expect(text).to_string(),
                address
            );
        }
        for invalid in [
            "",
            "localhost:8421",
            "https://localhost",
            "http://",
            "http://:1",
            "http://h:x",
            "http://h/sessions",
            "http://u@h",
        ] {
            assert!(invalid.parse::<ServerAddress>().is_err(), "{invalid}");
        }
    }
}
