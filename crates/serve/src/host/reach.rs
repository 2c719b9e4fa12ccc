//! Whether the model providers of a pack can be reached: one request without a key to each, which costs
//! nothing. Any answer will do, also a refusal.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use turnwire_agent::RetryOptions;
use turnwire_dial::{AllowRule, HttpMethod, HttpRequest, Url};
use turnwire_model::{CallTimeouts, ModelResponseLimits};
use turnwire_pack::Pack;

use super::PackLoadError;
use super::models::{self, ProviderLimits};

/// Requests at the same time.
const REQUESTS_MAX: usize = 4;
/// Time limit of the connection and of the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most that is read of an answer.
const BYTES_MAX: usize = 65_536;

/// Whether a provider can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderReach {
    /// The name in the pack.
    pub provider: String,
    /// Host and port, without a path and a query.
    pub host: String,
    /// The status of the answer and the time that it took, or why there was none.
    pub outcome: Result<(u16, Duration), String>,
}

/// Asks every provider that the pack calls over the network, by name. Only hosts that a server would
/// call are called: those of the pack, and `allow`.
pub async fn reach_providers(
    pack: &Pack,
    allow: &[AllowRule],
) -> Result<Vec<ProviderReach>, PackLoadError> {
    let limits = ProviderLimits {
        timeouts: CallTimeouts::default(),
        limits: ModelResponseLimits::default(),
        retries: RetryOptions::default(),
        allow: allow.to_vec(),
        deck: None,
        pace: 1.0,
        script_pace_percent: 0,
    };
    let used = pack.used_providers();
    let dialer = models::dialer(used.values(), &limits)?;
    let reaches = used.into_iter().map(|(name, provider)| {
        let dialer = dialer.clone();
        async move {
            let url = Url::parse(&provider.base_url).ok();
            let host = url.as_ref().map_or(String::new(), host_of);
            let outcome = match url {
                None => Err("its address is no URL".to_owned()),
                Some(url) => {
                    let request = HttpRequest {
                        connect: TIMEOUT,
                        timeout: TIMEOUT,
                        max_bytes: BYTES_MAX,
                        redirects_max: None,
                        ..HttpRequest::new(HttpMethod::Get, url)
                    };
                    let started = Instant::now();
                    let answer = dialer.send_streaming(request).await;
                    let answer = answer.map(|answer| (answer.status(), started.elapsed()));
                    answer.map_err(|error| error.to_string())
                }
            };
            ProviderReach {
                provider: name.to_owned(),
                host,
                outcome,
            }
        }
    });
    let reaches = futures_util::stream::iter(reaches).buffered(REQUESTS_MAX);
    Ok(reaches.collect().await)
}

fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default();
    port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
