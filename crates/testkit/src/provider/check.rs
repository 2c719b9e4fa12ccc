//! What every provider asks of a request, whatever the script: a key, the headers, the fields
//! without which it answers 400. A fake that took anything would hide an adapter's mistakes.

use serde_json::Value;

use super::dialect::Dialect;
use super::error::ProviderError;
use super::http::HttpRequest;
use super::pairs;

/// The versions of Anthropic's interface: the one of every client since 2023, and the one that
/// newer clients ask for, which no longer takes sampling parameters.
const ANTHROPIC_VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];

/// Why the provider refuses a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestRejection {
    pub(crate) trouble: ProviderError,
    pub(crate) message: String,
}

/// What is wrong with a request, if anything.
pub(crate) fn complaint(
    dialect: Dialect,
    request: &HttpRequest,
    body: &Value,
    key: Option<&str>,
) -> Option<RequestRejection> {
    let complain = |trouble, message: String| Some(RequestRejection { trouble, message });
    if request.method != "POST" {
        return complain(ProviderError::NotFound, "only POST is answered".to_owned());
    }
    let given = given_key(dialect, request);
    if given.is_none_or(str::is_empty) || key.is_some_and(|key| given != Some(key)) {
        let message = "the key is missing or not the right one";
        return complain(ProviderError::Unauthorized, message.to_owned());
    }
    let kind = request.header("content-type").unwrap_or_default();
    if !kind.starts_with("application/json") || !body.is_object() {
        return complain(
            ProviderError::BadRequest,
            "the body is no JSON object".to_owned(),
        );
    }
    let wrong = match dialect {
        Dialect::Anthropic => anthropic(request, body),
        Dialect::Chat => chat(body),
        Dialect::Responses => responses(body),
        Dialect::Gemini => gemini(request, body),
    };
    wrong.and_then(|message| complain(ProviderError::BadRequest, message))
}

fn given_key(dialect: Dialect, request: &HttpRequest) -> Option<&str> {
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
        let gone = ["temperature", "top_p", "top_k"];
        if let Some(field) = gone.iter().find(|field| body.get(**field).is_some()) {
            return Some(format!("{field}: Extra inputs are not permitted"));
        }
    }
    if body["max_tokens"].as_u64().is_none_or(|count| count == 0) {
        return Some("max_tokens: Field required".to_owned());
    }
    streams(body)
        .or_else(|| named(body))
        .or_else(|| filled(body, "messages"))
        .or_else(|| pairs::anthropic(body))
}

fn chat(body: &Value) -> Option<String> {
    streams(body)
        .or_else(|| named(body))
        .or_else(|| filled(body, "messages"))
        .or_else(|| pairs::chat(body))
}

fn responses(body: &Value) -> Option<String> {
    let input = &body["input"];
    if !input.is_string() && input.as_array().is_none_or(Vec::is_empty) {
        return Some("Missing required parameter: 'input'.".to_owned());
    }
    streams(body)
        .or_else(|| named(body))
        .or_else(|| pairs::responses(body))
}

fn gemini(request: &HttpRequest, body: &Value) -> Option<String> {
    if !request.query.split('&').any(|field| field == "alt=sse") {
        return Some("without alt=sse the answer is no event stream".to_owned());
    }
    filled(body, "contents").or_else(|| pairs::gemini(body))
}

/// The fakes stream, and only that: who forgets to ask for it must notice.
fn streams(body: &Value) -> Option<String> {
    (body["stream"] != true).then(|| "stream: must be true here".to_owned())
}

fn named(body: &Value) -> Option<String> {
    let named = body["model"].as_str().is_some_and(|name| !name.is_empty());
    (!named).then(|| "you must provide a model parameter".to_owned())
}

fn filled(body: &Value, field: &str) -> Option<String> {
    let empty = body[field].as_array().is_none_or(Vec::is_empty);
    empty.then(|| format!("{field}: must be a list that is not empty"))
}
