//! How a request reaches a service: one request, one whole answer, nothing streamed (S2-035).
//! REST is the way that is here; another is another `Transport` (S2-044).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use turnwire_dial::{Answer, DialError, Dialer, Limits, Url};
use turnwire_event::port::BoxFuture;
use turnwire_pack::DataService;

use crate::connector::typing::BadConnector;

/// The longest any service may take, whatever the pack says: a call that nobody waits for any
/// more must end soon (D-31, D-79). The check of a pack refuses a larger `timeout_ms`; this is
/// for what was made without that check.
pub(crate) const CALL_MAX: Duration = Duration::from_secs(10);
/// The largest answer, whatever the pack says.
pub(crate) const BYTES_MAX: u64 = 8 * 1_048_576;

/// A way to one service.
pub trait Transport: Send + Sync {
    /// Sends a request and waits for the whole answer.
    fn send(&self, request: Bytes) -> BoxFuture<'static, Result<Answer, DialError>>;
}

/// `POST {url}/v1/enrich`.
pub(crate) struct Rest {
    dialer: Arc<Dialer>,
    url: Url,
    limits: Limits,
}

impl Rest {
    pub(crate) fn new(
        name: &str,
        service: &DataService,
        dialer: &Arc<Dialer>,
    ) -> Result<Self, BadConnector> {
        let base = service.url.trim_end_matches('/');
        let url = Url::parse(&format!("{base}/v1/enrich"))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        Ok(Self {
            dialer: Arc::clone(dialer),
            url: url.ok_or_else(|| BadConnector::Url(name.to_owned()))?,
            limits: Limits {
                timeout: Duration::from_millis(service.timeout_ms).min(CALL_MAX),
                max_bytes: usize::try_from(service.max_bytes.min(BYTES_MAX)).unwrap_or(usize::MAX),
            },
        })
    }
}

impl Transport for Rest {
    fn send(&self, request: Bytes) -> BoxFuture<'static, Result<Answer, DialError>> {
        let dialer = Arc::clone(&self.dialer);
        let (url, limits) = (self.url.clone(), self.limits);
        Box::pin(async move { dialer.post_json(&url, request, limits).await })
    }
}
