//! Origins of web sites: a scheme, a host and a port, as browsers send them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most sites that may be listed: each request with an origin is compared with all.
const SITES_MAX: usize = 64;

/// The longest origin: a host name has at most 253 characters.
const SITE_BYTES_MAX: usize = 300;

/// The origin of a web site, spelt as browsers spell it: in lower case, the port of the scheme
/// left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteOrigin {
    scheme: String,
    host: String,
    /// `None` for the usual port of the scheme.
    port: Option<u16>,
}

impl fmt::Display for SiteOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl SiteOrigin {
    /// Reads `scheme://host` or `scheme://host:port` and nothing more; `None` for anything else.
    pub fn read(text: &str) -> Option<Self> {
        if text.len() > SITE_BYTES_MAX {
            return None;
        }
        let text = text.to_ascii_lowercase();
        let (scheme, rest) = text.split_once("://")?;
        let (host, port) = match rest.rsplit_once(':') {
            // The last colon of an IPv6 address without a port stands inside its brackets.
            Some((host, port)) if !port.ends_with(']') => (host, Some(number(port)?)),
            Some(_) | None => (rest, None),
        };
        let usual = match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        let host = match bracketed(host) {
            // One spelling for each IPv6 address.
            Some(address) => format!("[{}]", address.parse::<Ipv6Addr>().ok()?),
            None => host.to_owned(),
        };
        (is_scheme(scheme) && is_host(&host)).then(|| Self {
            scheme: scheme.to_owned(),
            host,
            port: port.filter(|port| Some(*port) != usual),
        })
    }

    /// The host and, if it is not the usual one of the scheme, the port.
    pub fn authority(&self) -> String {
        let port = self
            .port
            .map_or_else(String::new, |port| format!(":{port}"));
        format!("{}{port}", self.host)
    }

    /// The same host and port for WebSockets: `wss` instead of `https`.
    pub fn websocket(&self) -> String {
        let scheme = if self.scheme == "https" { "wss" } else { "ws" };
        format!("{scheme}://{}", self.authority())
    }

    /// The name or address, without a port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// True if the host is an IP address.
    pub fn is_address(&self) -> bool {
        bracketed(&self.host).is_some() || self.host.parse::<Ipv4Addr>().is_ok()
    }

    /// True if the host is `localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        let address = match bracketed(&self.host) {
            Some(address) => address.parse().map(IpAddr::V6),
            None => self.host.parse().map(IpAddr::V4),
        };
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

/// The address inside the brackets of an IPv6 host.
fn bracketed(host: &str) -> Option<&str> {
    host.strip_prefix('[')?.strip_suffix(']')
}

fn number(digits: &str) -> Option<u16> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b))
}

fn is_host(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    match bracketed(text) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !text.is_empty() && text.bytes().all(is_plain),
    }
}

/// Parses origins between commas; an empty text has none.
pub(in crate::config) fn list(text: &str) -> Result<Vec<SiteOrigin>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let sites: Vec<&str> = text.split(',').map(str::trim).collect();
    if sites.contains(&"*") {
        return Err(
            "exact origins and not *: requests are not authenticated, so every page that a \
             browser here opens could use this server"
                .to_owned(),
        );
    }
    if sites.len() > SITES_MAX {
        return Err(format!("at most {SITES_MAX} origins"));
    }
    let read: Option<Vec<SiteOrigin>> = sites.into_iter().map(SiteOrigin::read).collect();
    read.ok_or_else(|| {
        "origins between commas, each scheme://host or scheme://host:port without a path, such \
         as http://localhost:3000"
            .to_owned()
    })
}

/// Parses the origin under which clients reach the server; an empty text is `None`.
pub(in crate::config) fn public(text: &str) -> Result<Option<SiteOrigin>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let site = SiteOrigin::read(text.strip_suffix('/').unwrap_or(text));
    let site = site.filter(|site| matches!(site.scheme.as_str(), "http" | "https"));
    site.map(Some).ok_or_else(|| {
        "http:// or https:// with a host and, if it is not the usual one, a port, without a path, \
         such as https://chat.example.com"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_is_normalised_as_browsers_send_it() {
        for (text, site) in [
            ("http://localhost:3000", "http://localhost:3000"),
            ("HTTPS://App.Example.COM", "https://app.example.com"),
            ("https://app.example.com:443", "https://app.example.com"),
            ("http://localhost:80", "http://localhost"),
            ("http://localhost:443", "http://localhost:443"),
            ("http://[::1]:3000", "http://[::1]:3000"),
            ("http://[::1]", "http://[::1]"),
            ("http://[0:0:0:0:0:0:0:1]:80", "http://[::1]"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
            ("tauri://localhost", "tauri://localhost"),
        ] {
            let read = SiteOrigin::read(text).map(|site| site.to_string());
            assert_eq!(read.as_deref(), Some(site), "{text}");
        }
    }

    #[test]
    fn incomplete_or_extended_origin_is_invalid() {
        let long = format!("http://{}", "a".repeat(SITE_BYTES_MAX));
        for bad in [
            "",
            "*",
            "null",
            "localhost",
            "localhost:3000",
            "http://",
            "http://:3000",
            "http://a/",
            "http://a/b",
            "http://a?b",
            "http://a#b",
            "http://u@a",
            "http://*.a.com",
            "http://a:",
            "http://a:x",
            "http://a:99999",
            "http://a:+1",
            "://a",
            "1http://a",
            "http://a b",
            "http://[::1",
            "http://[x]",
            "http://a:1:2",
            "http://\u{e9}.com",
            long.as_str(),
        ] {
            assert_eq!(SiteOrigin::read(bad), None, "{bad}");
        }
    }
}
