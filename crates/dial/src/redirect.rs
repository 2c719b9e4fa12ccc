//! Follows redirects. This module only computes and checks the next request; the
//! [`Dialer`](crate::Dialer) sends it like the first one, but with less trust.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    let is_forbidden =
        host_address(url).is_some_and(|address| classify(address) == AddressClass::Forbidden);
    (is_http && has_no_credentials && has_host && !is_forbidden)
        .then_some(())
        .ok_or(DialError::Refused)
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
            let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            let mut rules = allow.iter();
            rules.any(|rule| rule.matches_host(host))
                || loopback
                    .into_iter()
                    .all(|address| is_permitted("", address, allow))
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
    let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
    let (true, Some(location), Some(redirects_max)) =
        (is_redirect, location, request.redirects_max)
    else {
        return Ok(false);
    };
    let redirects_left = redirects_max.checked_sub(1);
    let redirects_left = redirects_left.ok_or(DialError::TooManyRedirects)?;
    let location = std::str::from_utf8(location).map_err(|_| DialError::Refused)?;
    let next = request.url.join(location).map_err(|_| DialError::Refused)?;
    if request.url.scheme() == "https" && next.scheme() != "https" {
        return Err(DialError::Refused);
    }
    check_redirect(&next, first, allow)?;
    // Headers may carry a key for one origin; once removed, they are not added again.
    if next.origin() != request.url.origin() {
        request.headers = RequestHeaders::default();
    }
    let is_post = request.method == HttpMethod::Post;
    if status == 303 || (matches!(status, 301 | 302) && is_post) {
        request.method = HttpMethod::Get;
        request.body = None;
    }
    request.redirects_max = Some(redirects_left);
    request.url = next;
    Ok(true)
}

#[cfg(test)]
mod tests;
