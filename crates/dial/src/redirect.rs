//! Follows redirects. This module only computes and checks the next request; the
//! [`Dialer`](crate::Dialer) sends it like the first one, but with less trust.

use std::net::IpAddr;

use reqwest::Url;

use crate::address::{AddressClass, classify};
use crate::allow::{AllowRule, normalize_host};
use crate::error::DialError;
use crate::headers::RequestHeaders;
use crate::request::{HttpMethod, HttpRequest};
use crate::resolver::is_permitted;

/// The IP address of a URL whose host is an address. URL parsing has already normalised unusual
/// forms such as `0x7f.1` and `2130706433`.
fn host_address(url: &Url) -> Option<IpAddr> {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse().ok()
}

/// Checks whether a request to `url` may be sent, before any host name is resolved. An IP address
/// in the URL comes from the operator and is allowed unless it is forbidden.
pub(crate) fn check_url(url: &Url) -> Result<(), DialError> {
    let is_http = matches!(url.scheme(), "http" | "https");
    let has_no_credentials = url.username().is_empty() && url.password().is_none();
    let host = url.host_str().unwrap_or_default();
    let is_forbidden =
        host_address(url).is_some_and(|address| classify(address) == AddressClass::Forbidden);
    if is_http && has_no_credentials && !host.is_empty() && !is_forbidden {
        Ok(())
    } else {
        Err(DialError::Refused)
    }
}

/// Checks the target of a redirect. Only the origin that the operator configured, `first`, keeps
/// the operator's trust: another port of the same machine is another service.
fn check_redirect(url: &Url, first: &Url, allow: &[AllowRule]) -> Result<(), DialError> {
    check_url(url)?;
    if url.origin() == first.origin() {
        return Ok(());
    }
    let host = url.host_str().unwrap_or_default();
    let is_allowed = match host_address(url) {
        // An IP address has no name: only a network of the allow list can permit it.
        Some(address) => is_permitted("", address, allow),
        None if normalize_host(host) == "localhost" => {
            let loopback = [
                IpAddr::from([127, 0, 0, 1]),
                std::net::Ipv6Addr::LOCALHOST.into(),
            ];
            allow.iter().any(|entry| entry.matches_host(host))
                || loopback
                    .iter()
                    .all(|&address| is_permitted("", address, allow))
        }
        None => true,
    };
    is_allowed.then_some(()).ok_or(DialError::Refused)
}

/// Changes `request` to the next hop if `status` and `location` are a redirect, and returns true
/// then. `first` is the URL of the original request.
pub(crate) fn follow_redirect(
    request: &mut HttpRequest,
    status: u16,
    location: Option<&[u8]>,
    first: &Url,
    allow: &[AllowRule],
) -> Result<bool, DialError> {
    let (true, Some(location)) = (matches!(status, 301 | 302 | 303 | 307 | 308), location) else {
        return Ok(false);
    };
    let Some(redirects_left) = request.redirects_max.checked_sub(1) else {
        return Err(DialError::TooManyRedirects);
    };
    let location = std::str::from_utf8(location).map_err(|_| DialError::Refused)?;
    let next = request.url.join(location).map_err(|_| DialError::Refused)?;
    let drops_tls = request.url.scheme() == "https" && next.scheme() != "https";
    if drops_tls {
        return Err(DialError::Refused);
    }
    check_redirect(&next, first, allow)?;
    // Headers may carry a key for one origin; once removed, they are not added again.
    if next.origin() != request.url.origin() {
        request.headers = RequestHeaders::default();
    }
    let becomes_get = match status {
        301 | 302 => request.method == HttpMethod::Post,
        303 => true,
        _ => false,
    };
    if becomes_get {
        request.method = HttpMethod::Get;
        request.body = None;
    }
    request.redirects_max = redirects_left;
    request.url = next;
    Ok(true)
}

#[cfg(test)]
mod tests;
