//! The address of a server, `http://host:port` or `https://host:port`, parsed strictly.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The port of a server that is started without settings.
pub const DEFAULT_PORT: u16 = 8421;
/// The port of a proxy that speaks TLS.
const TLS_PORT: u16 = 443;

/// The scheme, host and port of a server; without a port, [`DEFAULT_PORT`] for `http` and 443 for
/// `https`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    is_tls: bool,
    /// With brackets around an IPv6 address.
    host: String,
    port: u16,
}

impl ServerAddress {
    /// The value of the `Host` header: `host:port`, or `host` on the port of `https`.
    pub fn authority(&self) -> String {
        match self.is_tls && self.port == TLS_PORT {
            true => self.host.clone(),
            false => self.target(),
        }
    }

    /// The target of the TCP connection: `host:port`.
    pub(crate) fn target(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The host, an IPv6 address without its brackets.
    pub(crate) fn host(&self) -> &str {
        let bare = self.host.strip_prefix('[');
        let bare = bare.and_then(|host| host.strip_suffix(']'));
        bare.unwrap_or(&self.host)
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// True if nobody on the way can read what is sent: `https`, or a loopback address.
    pub fn is_confidential(&self) -> bool {
        let host = self.host();
        match host.parse::<IpAddr>() {
            Ok(address) => self.is_tls || address.to_canonical().is_loopback(),
            Err(_) => self.is_tls || is_localhost(host),
        }
    }

    /// The URL of a WebSocket at `path`.
    pub(crate) fn websocket_url(&self, path: &str) -> String {
        let scheme = if self.is_tls { "wss" } else { "ws" };
        format!("{scheme}://{}{path}", self.authority())
    }
}

/// The names that RFC 6761 keeps for loopback addresses.
fn is_localhost(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    last.eq_ignore_ascii_case("localhost")
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

impl FromStr for ServerAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |why| Error::Address(format!("`{text}` is not a server address: {why}"));
        parse(text).map_err(invalid)
    }
}

fn parse(text: &str) -> Result<ServerAddress, &'static str> {
    let (is_tls, authority) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(authority), _) => (true, authority),
        (None, Some(authority)) => (false, authority),
        (None, None) => return Err("it must begin with http:// or https://"),
    };
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    if authority.contains(['/', '?', '#', '@']) {
        return Err("it must be http://host:port or https://host:port and nothing more");
    }
    // The colons of an IPv6 address are inside its brackets.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let port: Result<u16, _> = port.parse();
            (host, port.map_err(|_| "the port is not a number")?)
        }
        _ => (authority, if is_tls { TLS_PORT } else { DEFAULT_PORT }),
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err("the host is missing");
    }
    Ok(ServerAddress {
        is_tls,
        host: host.to_owned(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ServerAddress {
        text.parse().expect(text)
    }

    #[test]
    fn addresses_are_parsed_strictly() {
        let good = [
            ("http://127.0.0.1:8421", "http://127.0.0.1:8421"),
            ("http://localhost", "http://localhost:8421"),
            ("http://localhost:80/", "http://localhost:80"),
            ("http://[::1]:9", "http://[::1]:9"),
            ("http://[::1]", "http://[::1]:8421"),
            ("https://example.com", "https://example.com"),
            ("https://example.com:443/", "https://example.com"),
            ("https://[::1]:8443", "https://[::1]:8443"),
        ];
        for (text, shown) in good {
            assert_eq!(address(text).to_string(), shown);
        }
        for invalid in [
            "",
            "localhost:8421",
            "wss://localhost",
            "HTTPS://localhost",
            "http://",
            "https://",
            "http://:1",
            "http://h:x",
            "http://h/sessions",
            "https://u@h",
        ] {
            assert!(invalid.parse::<ServerAddress>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn connection_and_websocket_have_the_port_and_the_host_header_may_not() {
        let proxied = address("https://example.com");
        assert_eq!(proxied.target(), "example.com:443");
        assert_eq!(proxied.authority(), "example.com");
        assert_eq!(proxied.websocket_url("/x"), "wss://example.com/x");
        let local = address("http://[::1]:9");
        assert_eq!((local.target().as_str(), local.host()), ("[::1]:9", "::1"));
        assert_eq!(local.websocket_url("/x"), "ws://[::1]:9/x");
    }

    #[test]
    fn only_tls_and_loopback_addresses_are_confidential() {
        for text in [
            "https://example.com",
            "https://192.0.2.1",
            "http://localhost",
            "http://app.LOCALHOST:1",
            "http://127.8.9.1",
            "http://[::1]",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert!(address(text).is_confidential(), "{text}");
        }
        for text in [
            "http://example.com",
            "http://localhost.example.com",
            "http://0.0.0.0",
            "http://192.168.1.2",
            "http://[fe80::1]",
        ] {
            assert!(!address(text).is_confidential(), "{text}");
        }
    }
}
