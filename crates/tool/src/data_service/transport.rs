//! How a request reaches a service: one request, one whole response, no streaming (S2-035). Each
//! protocol is a [`ServiceTransport`] (S2-044); REST is here, MCP in `mcp::enrich`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use turnwire_dial::{DialError, Dialer, JsonResponse, RequestHeaders, ResponseLimits, Url};
use turnwire_event::Owner;
use turnwire_event::port::BoxFuture;
use turnwire_pack::DataService;

/// The upper bound of any `timeout_ms`: the call of a dropped tool must end soon (D-31, D-79). The
/// check of a pack rejects a larger value; this bound is for values that were not checked.
pub(crate) const CALL_MAX: Duration = Duration::from_secs(10);
/// The upper bound of any `max_bytes`.
const BYTES_MAX: u64 = 8 * 1_048_576;

/// A request to a service.
#[derive(Clone, Debug)]
pub struct ServiceRequest {
    /// The owner of the turn.
    pub owner: Owner,
    /// The request of the contract, as JSON.
    pub body: Bytes,
    /// The headers of the trace (S4-014).
    pub trace: Vec<(&'static str, String)>,
}

/// Sends a request to one service and waits for the whole response.
pub type ServiceTransport =
    dyn Fn(ServiceRequest) -> BoxFuture<'static, Result<JsonResponse, DialError>> + Send + Sync;

/// What a request to one service carries beside its body: headers with keys, and the certificate with
/// which the server identifies itself. Debug output has the names of the headers alone.
#[derive(Clone, Debug, Default)]
pub struct ServiceCredentials {
    /// All headers of the pack for the service.
    pub headers: RequestHeaders,
    /// Dials with the client certificate of the service; `None` for the dialer of all.
    pub dialer: Option<Arc<Dialer>>,
}

/// The limits of a response of `service`.
pub(crate) fn response_limits(service: &DataService) -> ResponseLimits {
    ResponseLimits {
        timeout: Duration::from_millis(service.timeout_ms).min(CALL_MAX),
        max_bytes: usize::try_from(service.max_bytes.min(BYTES_MAX)).unwrap_or(usize::MAX),
    }
}

/// The URL of `text`, if it is an address of HTTP with a host.
pub(crate) fn http_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// Posts requests to a REST service. The error says what is wrong with `service`.
pub(crate) fn rest_transport(
    service: &DataService,
    dialer: &Arc<Dialer>,
    credentials: ServiceCredentials,
) -> Result<Arc<ServiceTransport>, String> {
    let base = service.url.trim_end_matches('/');
    let url = http_url(&format!("{base}/v1/enrich"));
    let url = url.ok_or("its url is not an http or https address")?;
    let ServiceCredentials {
        headers,
        dialer: own,
    } = credentials;
    let (dialer, limits) = (
        own.unwrap_or_else(|| Arc::clone(dialer)),
        response_limits(service),
    );
    Ok(Arc::new(move |request: ServiceRequest| {
        let trace = request.trace.iter();
        let trace = RequestHeaders::new(trace.map(|(name, value)| (*name, value.as_str())));
        let headers = headers.clone().with(trace.unwrap_or_default());
        let (dialer, url) = (Arc::clone(&dialer), url.clone());
        Box::pin(async move { dialer.post_json(&url, headers, request.body, limits).await })
    }))
}
