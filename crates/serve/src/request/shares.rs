//! What each request counts for: the owner's shares in connections and in large answers, or those of
//! the operator's probes.

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::{IntoResponse as _, Response};
use turnwire_event::Owner;

use crate::access::callers;
use crate::config::http::Http;
use crate::error::RequestFault;
use crate::listen::{OwnerPermit, OwnerShares};

/// Probes of the operator. They are never refused for what other requests use, nor for an invalid
/// owner, which counts like one that is not named.
const PROBES: [&str; 3] = ["/healthz", "/readyz", METRICS];
/// The probe with an answer that may be large.
const METRICS: &str = "/metrics";

/// The shares of each owner in what requests use.
#[derive(Clone, Debug)]
pub struct RequestShares {
    requests: ShareSet,
    /// Apart from the others: no other request takes a place of a probe.
    probes: ShareSet,
}

#[derive(Clone, Debug)]
struct ShareSet {
    /// Requests that are being answered.
    connections: OwnerShares,
    /// Large answers that are being written.
    transfers: OwnerShares,
}

/// A request that counts for its owner.
#[derive(Debug)]
pub struct CountedRequest<'a> {
    /// Held to the end of the answer; `None` if the request counts for nobody.
    pub permit: Option<OwnerPermit>,
    owner: Owner,
    transfers: &'a OwnerShares,
}

impl RequestShares {
    /// The shares of requests in `connections` and `transfers`, and those of probes within the limits
    /// in `http`: at most a quarter of all connections.
    pub fn new(connections: OwnerShares, transfers: OwnerShares, http: &Http) -> Self {
        let slot_bytes = http.answer_max_bytes;
        let total = http.probes_max.min(http.connections_max / 4).max(1);
        let transfers_max = (total / 4).max(1);
        Self {
            requests: ShareSet {
                connections,
                transfers,
            },
            probes: ShareSet {
                connections: OwnerShares::probes(total, total / 2, slot_bytes),
                transfers: OwnerShares::probes(transfers_max, transfers_max / 2, slot_bytes),
            },
        }
    }

    /// Counts `request` for its owner, to the end of the answer; one without an owner counts for the
    /// anonymous one. The upgrade of a session's stream
    /// counts for the owner of its token. A small probe is answered in any case.
    pub fn count(
        &self,
        request: &Request,
        owner: Option<&Owner>,
    ) -> Result<CountedRequest<'_>, RequestFault> {
        let path = request.uri().path();
        let is_probe = is_probe(path);
        let owner = owner.cloned().unwrap_or_else(callers::anonymous);
        let shares = if is_probe {
            &self.probes
        } else {
            &self.requests
        };
        let permit = if is_stream_upgrade(request) {
            None
        } else {
            match shares.connections.acquire(&owner) {
                Err(_) if is_probe && path != METRICS => None,
                permit => Some(permit?),
            }
        };
        Ok(CountedRequest {
            permit,
            owner,
            transfers: &shares.transfers,
        })
    }
}

impl CountedRequest<'_> {
    /// Counts a large answer for its owner until it is written, and refuses it if the owner does not
    /// read others. Only answers to GET are refused: another request may have changed something, and
    /// its client must know.
    pub fn count_answer(&self, mut response: Response, method: &Method) -> Response {
        // A stream has no size yet.
        let bytes = response.body().size_hint().lower();
        match self.transfers.acquire_body(&self.owner, bytes) {
            Ok(permit) => {
                if let Some(permit) = permit {
                    response.extensions_mut().insert(permit);
                }
                response
            }
            Err(fault) if *method == Method::GET => fault.into_response(),
            Err(_) => response,
        }
    }
}

/// True for the path of a probe.
pub(crate) fn is_probe(path: &str) -> bool {
    PROBES.contains(&path)
}

/// True for the upgrade to a session's stream, and for no other path: an `Upgrade` header alone must
/// not keep a request from being counted.
fn is_stream_upgrade(request: &Request) -> bool {
    let path = request.uri().path();
    let is_stream = path.starts_with("/sessions/") && path.ends_with("/stream");
    let is_upgrade = request.headers().contains_key(header::UPGRADE);
    request.method() == Method::GET && is_stream && is_upgrade
}
