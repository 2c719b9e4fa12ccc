//! What the proxies in front say about a request: who sent it, and to which name (RFC 7239, or the
//! older `X-Forwarded-*` headers). Only listed proxies are believed.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::HeaderMap;

use crate::config::setting::network::Network;

/// The proxies whose headers are believed.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Arc<[Network]>);

/// A request as it came to the first proxy that is believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForwardedRequest {
    /// Who sent it, as far as that is known.
    pub(crate) client: Option<IpAddr>,
    /// The `Host` that it was sent to; `None` if no proxy says so.
    pub(crate) host: Option<String>,
    /// True if it came over TLS.
    pub(crate) is_https: bool,
}

/// One element of a `Forwarded` header.
#[derive(Debug, Default)]
struct Hop {
    sender: Option<IpAddr>,
    host: Option<String>,
    is_https: bool,
}

/// The most hops that are looked at.
const HOPS_MAX: usize = 16;

impl TrustedProxies {
    pub(crate) fn new(proxies: &[Network]) -> Self {
        Self(proxies.into())
    }

    fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// What the headers of a request from `peer` say, as far as listed proxies wrote them.
    pub(crate) fn read(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> ForwardedRequest {
        let mut request = ForwardedRequest {
            client: peer,
            ..ForwardedRequest::default()
        };
        if !peer.is_some_and(|peer| self.has(peer)) {
            return request;
        }
        let hops = hops(headers);
        // The last element was written by the peer, the one before by who sent it to the peer.
        for hop in hops.into_iter().rev().take(HOPS_MAX) {
            request.host = hop.host.or(request.host);
            request.is_https = hop.is_https;
            request.client = hop.sender;
            if !hop.sender.is_some_and(|sender| self.has(sender)) {
                break;
            }
        }
        request
    }
}

/// The hops of a request, from the client to this server.
fn hops(headers: &HeaderMap) -> Vec<Hop> {
    let elements = values(headers, "forwarded");
    if !elements.is_empty() {
        return elements.iter().map(|element| hop(element)).collect();
    }
    let senders = values(headers, "x-forwarded-for");
    let mut hops: Vec<Hop> = senders
        .iter()
        .map(|sender| Hop {
            sender: node(sender),
            ..Hop::default()
        })
        .collect();
    // Proxies replace these two instead of adding to them: what is last is the peer's.
    let last = |name| values(headers, name).pop();
    let (host, scheme) = (last("x-forwarded-host"), last("x-forwarded-proto"));
    if hops.is_empty() && (host.is_some() || scheme.is_some()) {
        hops.push(Hop::default());
    }
    let is_https = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    for hop in &mut hops {
        hop.is_https = is_https;
        hop.host.clone_from(&host);
    }
    hops
}

/// The comma-separated values of a header, in all its lines.
fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    let lines = headers.get_all(name).iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| split_outside_quotes(line, ','))
        .filter(|value| !value.is_empty())
        .collect()
}

/// The parts of `text` between separators that are not inside quotes, without spaces around them.
fn split_outside_quotes(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    for char in text.chars() {
        if char == '"' {
            is_quoted = !is_quoted;
        }
        if char == separator && !is_quoted {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(char);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

fn hop(element: &str) -> Hop {
    let mut hop = Hop::default();
    for pair in split_outside_quotes(element, ';') {
        let Some((name, value)) = pair.split_once('=') else {
            continue;
        };
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "for" => hop.sender = node(value),
            "host" => hop.host = Some(value.to_owned()),
            "proto" => hop.is_https = value.eq_ignore_ascii_case("https"),
            _ => {}
        }
    }
    hop
}

/// The address of a node, with or without a port; `None` for a name that hides it.
fn node(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse();
    address
        .or_else(|_| text.parse().map(|socket: SocketAddr| socket.ip()))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(peer: &str, said: &[(&'static str, &str)]) -> (String, String, bool) {
        let networks = ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().expect("a network"));
        let mut headers = HeaderMap::new();
        for (name, value) in said {
            headers.append(*name, value.parse().expect("a header"));
        }
        let peer = peer.parse().expect("an address");
        let request = TrustedProxies::new(&networks).read(Some(peer), &headers);
        let client = request
            .client
            .map_or("?".into(), |client| client.to_string());
        (client, request.host.unwrap_or_default(), request.is_https)
    }

    fn seen(client: &str, host: &str, is_https: bool) -> (String, String, bool) {
        (client.into(), host.into(), is_https)
    }

    // G4
    #[test]
    fn headers_of_others_are_not_believed() {
        let said = [
            ("forwarded", "for=1.2.3.4;proto=https;host=evil.com"),
            ("x-forwarded-host", "evil.com"),
        ];
        assert_eq!(read("9.9.9.9", &said), seen("9.9.9.9", "", false));
        let nobody = TrustedProxies::default();
        let mut headers = HeaderMap::new();
        headers.insert("forwarded", "host=evil.com".parse().expect("a header"));
        let read = nobody.read(Some([10, 0, 0, 1].into()), &headers);
        assert_eq!(read.host, None);
    }

    #[test]
    fn listed_proxy_tells_who_sent_the_request() {
        for (said, expected) in [
            (
                "for=1.2.3.4;proto=https;host=chat.example.com",
                seen("1.2.3.4", "chat.example.com", true),
            ),
            (
                "For=\"[2001:db8::1]:4711\";Proto=HTTPS;host=\"chat.example.com:444\"",
                seen("2001:db8::1", "chat.example.com:444", true),
            ),
            ("for=1.2.3.4:80", seen("1.2.3.4", "", false)),
            ("for=unknown;proto=http", seen("?", "", false)),
            ("for=_hidden", seen("?", "", false)),
            ("nonsense;;=,,", seen("?", "", false)),
        ] {
            assert_eq!(read("10.0.0.1", &[("forwarded", said)]), expected, "{said}");
        }
    }

    #[test]
    fn chain_is_believed_up_to_the_first_that_is_not_listed() {
        // A client sent the first element itself.
        let forged = "for=8.8.8.8;host=evil.com;proto=https, for=1.2.3.4;host=a.com, for=10.0.0.2";
        let expected = seen("1.2.3.4", "a.com", false);
        assert_eq!(read("10.0.0.1", &[("forwarded", forged)]), expected);
        let lines = [
            ("forwarded", "for=1.2.3.4;host=a.com;proto=https"),
            ("forwarded", "for=\"[fd00::2]\";proto=http"),
        ];
        assert_eq!(read("10.0.0.1", &lines), seen("1.2.3.4", "a.com", true));
    }

    #[test]
    fn older_headers_are_read_if_there_is_no_other() {
        let older = [
            ("x-forwarded-for", "8.8.8.8, 1.2.3.4, 10.0.0.2"),
            ("x-forwarded-host", "chat.example.com"),
            ("x-forwarded-proto", "https"),
        ];
        let expected = seen("1.2.3.4", "chat.example.com", true);
        assert_eq!(read("10.0.0.1", &older), expected);
        let only_scheme = [("x-forwarded-proto", "https")];
        assert_eq!(read("10.0.0.1", &only_scheme), seen("?", "", true));
        let both = [older[1], ("forwarded", "for=1.2.3.4")];
        assert_eq!(read("10.0.0.1", &both), seen("1.2.3.4", "", false));
    }
}
