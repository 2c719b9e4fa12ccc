//! The address of a server, `http://host:port`, parsed strictly. TLS is not supported yet, so
//! `https` is rejected with that reason.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The port of a server that is started without settings.
pub const DEFAULT_PORT: u16 = 8421;

/// The host and port of a server; parsed from `http://host:port`, or from `http://host` with
/// [`DEFAULT_PORT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    authority: String,
}

impl ServerAddress {
    /// The target of the TCP connection and the value of the `Host` header: `host:port`.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

impl FromStr for ServerAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |why| Error::Address(format!("`{text}` is not a server address: {why}"));
        let authority = parse_authority(text).map_err(invalid)?;
        Ok(Self { authority })
    }
}

fn parse_authority(text: &str) -> Result<String, &'static str> {
    if text.starts_with("https://") {
        return Err("TLS is not supported, use http://");
    }
    let authority = text.strip_prefix("http://");
    let authority = authority.ok_or("it must begin with http://")?;
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    if authority.contains(['/', '?', '#', '@']) {
        return Err("it must be http://host:port and nothing more");
    }
    // The colons of an IPv6 address are inside its brackets.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let port: Result<u16, _> = port.parse();
            (host, port.map_err(|_| "the port is not a number")?)
        }
        _ => (authority, DEFAULT_PORT),
    };
    match host.is_empty() || host.contains(char::is_whitespace) {
        true => Err("the host is missing"),
        false => Ok(format!("{host}:{port}")),
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
