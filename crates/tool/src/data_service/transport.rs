//! How a request reaches a service: one request, one whole response, no streaming (S2-035). Each
//! protocol is a [`ServiceTransport`] (S2-044); REST is here, MCP in `mcp::enrich`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use turnwire_dial::{DialError, Dialer, JsonResponse, ResponseLimits, Url};
use turnwire_event::port::BoxFuture;
use turnwire_pack::DataService;

use crate::data_service::registry::ConnectorError;

/// The upper bound of any `timeout_ms`: the call of a dropped tool must end soon (D-31, D-79). The
/// check of a pack rejects a larger value; this bound is for values that were not checked.
pub(crate) const CALL_MAX: Duration = Duration::from_secs(10);
/// The upper bound of any `max_bytes`.
pub(crate) const BYTES_MAX: u64 = 8 * 1_048_576;

/// Sends requests to one service.
pub trait ServiceTransport: Send + Sync {
    /// Sends a request and waits for the whole response.
    fn send(&self, request: Bytes) -> BoxFuture<'static, Result<JsonResponse, DialError>>;
}

/// The URL of `text`, if it is an address of HTTP with a host.
pub(crate) fn http_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

pub(crate) struct RestTransport {
    dialer: Arc<Dialer>,
    url: Url,
    limits: ResponseLimits,
}

impl RestTransport {
    pub(crate) fn new(
        name: &str,
        service: &DataService,
        dialer: &Arc<Dialer>,
    ) -> Result<Self, ConnectorError> {
        let base = service.url.trim_end_matches('/');
        let url = http_url(&format!("{base}/v1/enrich"));
        Ok(Self {
            dialer: Arc::clone(dialer),
            url: url.ok_or_else(|| ConnectorError::Url(name.to_owned()))?,
            limits: ResponseLimits {
                timeout: Duration::from_millis(service.timeout_ms).min(CALL_MAX),
                max_bytes: usize::try_from(service.max_bytes.min(BYTES_MAX)).unwrap_or(usize::MAX),
            },
        })
    }
}

impl ServiceTransport for RestTransport {
    fn send(&self, request: Bytes) -> BoxFuture<'static, Result<JsonResponse, DialError>> {
        let dialer = Arc::clone(&self.dialer);
        let (url, limits) = (self.url.clone(), self.limits);
        Box::pin(async move { dialer.post_json(&url, request, limits).await })
    }
}
