//! The HTTP transport: one provider's address, API key and headers. [`ModelHttpTransport`] sends
//! requests through the guarded [`Dialer`] and turns its errors into [`ModelError`]s.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use turnwire_dial::{
    DialError, Dialer, HttpMethod, HttpRequest, InvalidHeader, RequestHeaders, StreamingResponse,
    Url,
};
use turnwire_event::code::LlmErrorClass;
use zeroize::Zeroizing;

use super::CallTimeouts;
use super::retry_after::retry_after;
use super::transport::{ModelTransport, ResponseFuture, TransportRequest, TransportResponse};
use crate::delta::ModelError;
use crate::dialect::VendorDialect;
use crate::secret::ApiKey;

/// The configuration of a provider is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderConfigError {
    /// `base_url` is not a usable address.
    #[error(
        "base_url is not the address of a provider: write `http://` or `https://`, a host, and a path if there is one, without user, password, `?` and `#`"
    )]
    Url,
    /// A header name or value cannot be sent.
    #[error(transparent)]
    Header(#[from] InvalidHeader),
}

/// A [`ModelTransport`] that calls a provider over HTTP.
pub struct ModelHttpTransport {
    dialer: Arc<Dialer>,
    /// Base URL without a trailing `/`.
    base_url: String,
    /// Headers of the dialect, including the API key.
    dialect_headers: RequestHeaders,
    /// Headers that the operator configured.
    operator_headers: RequestHeaders,
    connect: Duration,
    first_byte: Duration,
}

impl ModelHttpTransport {
    /// The provider at `base_url`. `headers` are the operator's and replace the dialect's.
    pub fn new(
        dialer: Arc<Dialer>,
        base_url: &str,
        dialect: &dyn VendorDialect,
        key: Option<&ApiKey>,
        headers: &BTreeMap<String, String>,
        timeouts: &CallTimeouts,
    ) -> Result<Self, ProviderConfigError> {
        let dialect_headers = dialect.headers(key.map(ApiKey::expose)).into_iter();
        let dialect_headers: Vec<_> = dialect_headers
            .map(|(name, value)| (name, Zeroizing::new(value)))
            .collect();
        let dialect_headers = dialect_headers.iter();
        let dialect_headers = dialect_headers.map(|(name, value)| (*name, value.as_str()));
        let operator_headers = headers.iter();
        let operator_headers =
            operator_headers.map(|(name, value)| (name.as_str(), value.as_str()));
        Ok(Self {
            dialer,
            dialect_headers: RequestHeaders::new(dialect_headers)?,
            operator_headers: RequestHeaders::new(operator_headers)?,
            base_url: checked_base_url(base_url)?,
            connect: timeouts.connect,
            first_byte: timeouts.first_byte,
        })
    }

    fn outgoing(&self, request: TransportRequest) -> Result<HttpRequest, ModelError> {
        let url = Url::parse(&format!("{}{}", self.base_url, request.path)).ok();
        // Without the `/` the path would extend the host name.
        let url = url.filter(|_| request.path.starts_with('/'));
        let request_headers = request.headers.iter();
        let request_headers =
            RequestHeaders::new(request_headers.map(|(name, value)| (*name, value.as_str())));
        let internal_error = |place| ModelError::from(LlmErrorClass::Internal).with_location(place);
        let request_headers = request_headers.map_err(|_| internal_error("header"))?;
        let url = url.ok_or(internal_error("address"))?;
        Ok(HttpRequest {
            headers: self
                .dialect_headers
                .clone()
                .with(request_headers)
                .with(self.operator_headers.clone()),
            accept: "text/event-stream".into(),
            body: Some(request.body),
            connect: self.connect,
            timeout: self.first_byte,
            max_bytes: usize::MAX,
            redirects_max: None,
            ..HttpRequest::new(HttpMethod::Post, url)
        })
    }
}

impl ModelTransport for ModelHttpTransport {
    fn open(&self, request: TransportRequest) -> ResponseFuture {
        let dialer = Arc::clone(&self.dialer);
        let outgoing = self.outgoing(request);
        Box::pin(async move {
            let incoming = dialer.send_streaming(outgoing?).await;
            let incoming = incoming.map_err(model_error)?;
            Ok(TransportResponse {
                status: incoming.status(),
                retry_after: retry_after(|name| incoming.header(name)),
                is_event_stream: is_event_stream(&incoming),
                chunks: incoming.map(|chunk| chunk.map_err(model_error)).boxed(),
            })
        })
    }

    fn address(&self, path: &str) -> String {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        format!("{}{path}", without_keys(&self.base_url))
    }

    fn hide_keys(&self, text: &str) -> String {
        let hidden = self.dialect_headers.hide_values(text);
        self.operator_headers.hide_values(&hidden)
    }
}

/// A base URL without what may be a key in its path: of the path, words and versions are kept.
fn without_keys(base_url: &str) -> String {
    let is_word = |part: &str| {
        part.chars()
            .all(|c| c.is_ascii_alphabetic() || "-_".contains(c))
    };
    let is_version = |part: &str| part.len() <= 8 && part.starts_with('v');
    let segments = base_url.split('/').enumerate().map(|(index, part)| {
        // Before the path there are the scheme, an empty segment and the host.
        match index < 3 || is_word(part) || is_version(part) {
            true => part,
            false => "***",
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Checks a base URL: `http` or `https`, a host, no credentials, query or fragment.
fn checked_base_url(text: &str) -> Result<String, ProviderConfigError> {
    let url = Url::parse(text).map_err(|_| ProviderConfigError::Url)?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
    let has_no_credentials = url.username().is_empty() && url.password().is_none();
    let is_base =
        is_http && has_no_credentials && url.query().is_none() && url.fragment().is_none();
    let base_url = || url.as_str().trim_end_matches('/').to_owned();
    is_base.then(base_url).ok_or(ProviderConfigError::Url)
}

/// True if the content type is `text/event-stream`.
fn is_event_stream(incoming: &StreamingResponse) -> bool {
    let content_type = incoming.header("content-type").unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default();
    content_type
        .trim()
        .eq_ignore_ascii_case("text/event-stream")
}

fn model_error(error: DialError) -> ModelError {
    let (internal, provider) = (LlmErrorClass::Internal, LlmErrorClass::Provider);
    let timeout = ModelError::transient(LlmErrorClass::Timeout);
    match error {
        DialError::Refused => ModelError::from(internal).with_location("not_allowed"),
        DialError::Setup => ModelError::from(internal).with_location("setup"),
        DialError::ConnectTimeout => timeout.with_location("connect"),
        DialError::Timeout => timeout.with_location("first_byte"),
        DialError::Unreachable => {
            ModelError::transient(LlmErrorClass::Transport).with_location("connection")
        }
        DialError::TooLarge { .. } => ModelError::from(provider).with_location("call_too_large"),
        DialError::TooManyRedirects => ModelError::from(provider).with_location("redirects"),
        DialError::UnexpectedEncoding => ModelError::from(provider).with_location("encoding"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_is_shown_without_keys() {
        for (base_url, expected) in [
            ("https://api.example/v1", "https://api.example/v1"),
            ("http://10.0.0.1:8080", "http://10.0.0.1:8080"),
            (
                "https://gw.example/s3cr3t/openai/v1beta",
                "https://gw.example/***/openai/v1beta",
            ),
            ("https://gw.example/verysecret1", "https://gw.example/***"),
        ] {
            assert_eq!(without_keys(base_url), expected);
        }
    }
}
