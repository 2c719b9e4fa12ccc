//! Who may talk to this server at all (reliability G4).
//!
//! A page elsewhere can make a browser send requests here, and a name elsewhere can be made to
//! point here. So the Host must be a loopback name, and an Origin, where one is sent, must be
//! this server's own; everything else is refused before it is looked at.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::{HeaderMap, Uri, header};
use turnwire_wire::problem::Code;

use crate::error::Fault;
use crate::header::{Unclear, only};

/// The host and port by which the client came in, as it wrote them: part of URLs that it is
/// given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnHost(pub String);

/// Lets a request in, or says why not.
pub(crate) fn admit(uri: &Uri, headers: &HeaderMap) -> Result<OwnHost, Fault> {
    let refused = || {
        Fault::new(
            Code::HostNotAllowed,
            "The Host header must be localhost, an address in 127.0.0.0/8 or [::1].",
        )
    };
    let host = only(headers, header::HOST)
        .map_err(|_| refused())?
        .ok_or_else(refused)?;
    let own = Authority::read(host).ok_or_else(refused)?;
    // An absolute request target would overrule the Host header; it must not name another.
    if let Some(target) = uri.authority()
        && Authority::read(target.as_str()) != Some(own.clone())
    {
        return Err(refused());
    }
    let foreign = || {
        Fault::new(
            Code::OriginNotAllowed,
            "The Origin header must be absent or this server's own.",
        )
    };
    match only(headers, header::ORIGIN) {
        Ok(None) => Ok(OwnHost(host.to_owned())),
        Ok(Some(origin)) => {
            let origin = origin.strip_prefix("http://").and_then(Authority::read);
            if origin == Some(own) {
                Ok(OwnHost(host.to_owned()))
            } else {
                Err(foreign())
            }
        }
        Err(Unclear) => Err(foreign()),
    }
}

/// A loopback host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority {
    host: String,
    port: u16,
}

impl Authority {
    /// Reads `host` or `host:port`; `None` for anything that is not loopback.
    fn read(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (inside, after) = rest.split_once(']')?;
                let address: Ipv6Addr = inside.parse().ok()?;
                if !address.is_loopback() {
                    return None;
                }
                let port = match after.strip_prefix(':') {
                    Some(port) => Some(port),
                    None if after.is_empty() => None,
                    None => return None,
                };
                ("[::1]".to_owned(), port)
            }
            None => {
                let (host, port) = match text.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (text, None),
                };
                let loopback = host.eq_ignore_ascii_case("localhost")
                    || host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback());
                if !loopback {
                    return None;
                }
                (host.to_ascii_lowercase(), port)
            }
        };
        let port = match port {
            None => 80,
            Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().ok()?
            }
            Some(_) => return None,
        };
        Some(Self { host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(target: &str, host: &[&str], origin: &[&str]) -> Result<(), Code> {
        let mut headers = HeaderMap::new();
        for value in host {
            headers.append(header::HOST, value.parse().expect("a header"));
        }
        for value in origin {
            headers.append(header::ORIGIN, value.parse().expect("a header"));
        }
        let uri = target.parse().expect("a target");
        admit(&uri, &headers).map(|_| ()).map_err(|f| f.code())
    }

    #[test]
    fn any_loopback_name_and_port_may_be_the_host() {
        for host in [
            "localhost",
            "LocalHost:8421",
            "127.0.0.1:8421",
            "127.9.8.7:1",
            "[::1]",
            "[::1]:65535",
        ] {
            assert_eq!(admitted("/", &[host], &[]), Ok(()), "{host}");
        }
    }

    #[test]
    fn g4_a_foreign_host_is_refused() {
        for host in [
            "",
            "example.com",
            "localhost.evil.com:8421",
            "evil.com@localhost",
            "localhost.",
            "10.0.0.1",
            "0.0.0.0:8421",
            "127.1",
            "2130706433",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::1",
            "[::1]x",
            "::1",
            "localhost:",
            "localhost:x",
            "localhost:99999",
            "localhost:+80",
            "localhost, localhost",
        ] {
            let refused = Err(Code::HostNotAllowed);
            assert_eq!(admitted("/", &[host], &[]), refused, "{host}");
        }
        assert_eq!(admitted("/", &[], &[]), Err(Code::HostNotAllowed));
        assert_eq!(
            admitted("/", &["localhost", "localhost"], &[]),
            Err(Code::HostNotAllowed)
        );
        assert_eq!(
            admitted("http://evil.com/", &["localhost"], &[]),
            Err(Code::HostNotAllowed)
        );
        assert_eq!(
            admitted("http://localhost/", &["localhost:80"], &[]),
            Ok(())
        );
    }

    #[test]
    fn g4_an_origin_must_be_absent_or_own() {
        for (host, origin) in [
            ("localhost:8421", "http://localhost:8421"),
            ("localhost:8421", "http://LOCALHOST:8421"),
            ("127.0.0.1:8421", "http://127.0.0.1:8421"),
            ("[::1]:8421", "http://[::1]:8421"),
            ("localhost", "http://localhost:80"),
        ] {
            assert_eq!(admitted("/", &[host], &[origin]), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.com",
            "http://localhost:8422",
            "http://localhost",
            "https://localhost:8421",
            "http://127.0.0.1:8421",
            "http://localhost:8421/",
            "localhost:8421",
            "http://localhost:8421.evil.com",
            "http://evil.com@localhost:8421",
        ] {
            assert_eq!(
                admitted("/", &["localhost:8421"], &[origin]),
                Err(Code::OriginNotAllowed),
                "{origin}"
            );
        }
        let own = "http://localhost:8421";
        assert_eq!(
            admitted("/", &["localhost:8421"], &[own, own]),
            Err(Code::OriginNotAllowed)
        );
    }

    #[test]
    fn the_host_is_given_back_as_it_was_written() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "LocalHost:8421".parse().expect("a header"));
        let own = admit(&Uri::from_static("/"), &headers).expect("loopback");
        assert_eq!(own, OwnHost("LocalHost:8421".into()));
    }
}
