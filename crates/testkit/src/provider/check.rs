//! Validates requests as the providers do, independent of the script: the key, the headers and the
//! required fields. A fake without checks would hide an adapter's mistakes.

use serde_json::Value;

use super::dialect::Dialect;
use super::error::ProviderError;
use super::http::HttpRequest;
use super::pairs;

/// Versions of Anthropic's API: the one that all clients have sent since 2023, and the one of newer
/// clients, which does not accept sampling parameters.
const ANTHROPIC_VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];

/// Why the provider refuses a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestRejection {
    pub(crate) trouble: ProviderError,
    pub(crate) message: String,
}

/// Why a provider rejects a request; `None` if it is valid.
pub(crate) fn rejection(
    dialect: Dialect,
    request: &HttpRequest,
    body: &Value,
    key: Option<&str>,
) -> Option<RequestRejection> {
    let reject = |trouble, message: String| Some(RequestRejection { trouble, message });
    if request.method != "POST" {
        return reject(ProviderError::NotFound, "only POST is answered".to_owned());
    }
    let sent_key = request_key(dialect, request);
    if sent_key.is_none_or(str::is_empty) || key.is_some_and(|key| sent_key != Some(key)) {
        let message = "the key is missing or wrong";
        return reject(ProviderError::Unauthorized, message.to_owned());
    }
    let kind = request.header("content-type").unwrap_or_default();
    if !kind.starts_with("application/json") || !body.is_object() {
        return reject(
            ProviderError::BadRequest,
            "the body is not a JSON object".to_owned(),
        );
    }
    let problem = match dialect {
        Dialect::Anthropic => anthropic(request, body),
        Dialect::Chat => chat(body),
        Dialect::Responses => responses(body),
        Dialect::Gemini => gemini(request, body),
    };
    problem.and_then(|message| reject(ProviderError::BadRequest, message))
}

fn request_key(dialect: Dialect, request: &HttpRequest) -> Option<&str> {
    let bearer = || request.header("authorization")?.strip_prefix("Bearer ");
    match dialect {
        Dialect::Anthropic => request.header("x-api-key").or_else(bearer),
        Dialect::Chat | Dialect::Responses => bearer(),
        Dialect::Gemini => request.header("x-goog-api-key").or_else(|| {
            let mut fields = request.query.split('&');
            fields.find_map(|field| field.strip_prefix("key="))
        }),
    }
}

fn anthropic(request: &HttpRequest, body: &Value) -> Option<String> {
    let version = request.header("anthropic-version").unwrap_or_default();
    if !ANTHROPIC_VERSIONS.contains(&version) {
        return Some("anthropic-version: header is required".to_owned());
    }
    if version == ANTHROPIC_VERSIONS[1] {
        let removed = ["temperature", "top_p", "top_k"];
        if let Some(field) = removed.iter().find(|field| body.get(**field).is_some()) {
            return Some(format!("{field}: Extra inputs are not permitted"));
        }
    }
    if body["max_tokens"].as_u64().is_none_or(|count| count == 0) {
        return Some("max_tokens: Field required".to_owned());
    }
    require_stream(body)
        .or_else(|| require_model(body))
        .or_else(|| require_list(body, "messages"))
        .or_else(|| pairs::anthropic(body))
}

fn chat(body: &Value) -> Option<String> {
    require_stream(body)
        .or_else(|| require_model(body))
        .or_else(|| require_list(body, "messages"))
        .or_else(|| pairs::chat(body))
}

fn responses(body: &Value) -> Option<String> {
    let input = &body["input"];
    if !input.is_string() && input.as_array().is_none_or(Vec::is_empty) {
        return Some("Missing required parameter: 'input'.".to_owned());
    }
    require_stream(body)
        .or_else(|| require_model(body))
        .or_else(|| pairs::responses(body))
}

fn gemini(request: &HttpRequest, body: &Value) -> Option<String> {
    if !request.query.split('&').any(|field| field == "alt=sse") {
        return Some("alt=sse is required for an event stream".to_owned());
    }
    require_list(body, "contents").or_else(|| pairs::gemini(body))
}

/// The fakes only stream; a request without `stream` is an error.
fn require_stream(body: &Value) -> Option<String> {
    (body["stream"] != true).then(|| "stream: must be true here".to_owned())
}

fn require_model(body: &Value) -> Option<String> {
    let require_model = body["model"].as_str().is_some_and(|name| !name.is_empty());
    (!require_model).then(|| "you must provide a model parameter".to_owned())
}

fn require_list(body: &Value, field: &str) -> Option<String> {
    let empty = body[field].as_array().is_none_or(Vec::is_empty);
    empty.then(|| format!("{field}: must be a list that is not empty"))
}
