//! Where an answer sends a request on, hop by hop. Nothing here opens a connection: a hop is a
//! request like the first, less trusted.

use std::net::IpAddr;

use reqwest::Url;

use crate::address::{Reach, reach};
use crate::allow::{Allow, name};
use crate::error::DialError;
use crate::headers::Headers;
use crate::request::{Method, Request};
use crate::resolver::permitted;

/// The address in numbers that a host is, if it is one. Every odd form (`0x7f.1`, `2130706433`)
/// has become the plain one when the address was parsed.
fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse().ok()
}

/// Whether a request may leave, as far as its address alone tells. An address that stands there
/// in numbers is the operator's own word; what a name stands for is judged when it is resolved.
pub(crate) fn guard(url: &Url) -> Result<(), DialError> {
    let web = matches!(url.scheme(), "http" | "https");
    let bare = url.username().is_empty() && url.password().is_none();
    let host = url.host_str().unwrap_or_default();
    let never = literal(url).is_some_and(|address| reach(address) == Reach::Never);
    if web && bare && !host.is_empty() && !never {
        Ok(())
    } else {
        Err(DialError::Refused)
    }
}

/// The same for where a redirect leads. Only the origin that the operator wrote is still their
/// word: another port of the same machine is another service.
fn guard_hop(url: &Url, first: &Url, allow: &[Allow]) -> Result<(), DialError> {
    guard(url)?;
    if url.origin() == first.origin() {
        return Ok(());
    }
    let host = url.host_str().unwrap_or_default();
    let fits = match literal(url) {
        // A number has no name: only a network of the allow list can hold it.
        Some(address) => permitted("", address, allow),
        None if name(host) == "localhost" => {
            let local = [
                IpAddr::from([127, 0, 0, 1]),
                std::net::Ipv6Addr::LOCALHOST.into(),
            ];
            allow.iter().any(|entry| entry.names(host))
                || local.iter().all(|&address| permitted("", address, allow))
        }
        None => true,
    };
    fits.then_some(()).ok_or(DialError::Refused)
}

/// Turns `request` into its next hop, if `status` and `location` are a redirect; true then. The
/// first address of all is `first`.
pub(crate) fn follow(
    request: &mut Request,
    status: u16,
    location: Option<&[u8]>,
    first: &Url,
    allow: &[Allow],
) -> Result<bool, DialError> {
    let (true, Some(location)) = (matches!(status, 301 | 302 | 303 | 307 | 308), location) else {
        return Ok(false);
    };
    let Some(left) = request.redirects_max.checked_sub(1) else {
        return Err(DialError::Redirects);
    };
    let location = std::str::from_utf8(location).map_err(|_| DialError::Refused)?;
    let next = request.url.join(location).map_err(|_| DialError::Refused)?;
    let lowered = request.url.scheme() == "https" && next.scheme() != "https";
    if lowered {
        return Err(DialError::Refused);
    }
    guard_hop(&next, first, allow)?;
    // A key is for whom it was given for. What is once taken off does not come back on.
    if next.origin() != request.url.origin() {
        request.headers = Headers::default();
    }
    let reads = match status {
        301 | 302 => request.method == Method::Post,
        303 => true,
        _ => false,
    };
    if reads {
        request.method = Method::Get;
        request.body = None;
    }
    request.redirects_max = left;
    request.url = next;
    Ok(true)
}

#[cfg(test)]
mod tests;
