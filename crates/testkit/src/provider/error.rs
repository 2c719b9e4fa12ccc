//! Error responses of the providers: the status, each provider's error type and message, and the
//! body, before the stream or inside it.

use std::time::Duration;

use serde_json::{Value, json};

use super::dialect::Dialect;

/// Why a provider answers with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderError {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    TooLarge,
    RateLimited,
    Server,
    Unavailable,
    /// 529 at Anthropic, 503 elsewhere.
    Overloaded,
}

/// A provider's representation of a [`ProviderError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorText {
    pub(crate) status: u16,
    /// `type` at Anthropic and OpenAI, `status` at Google.
    pub(crate) kind: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) message: &'static str,
}

impl ProviderError {
    /// The representation in a provider's format.
    pub(crate) fn text(self, dialect: Dialect) -> ErrorText {
        let (kind, code) = match dialect {
            Dialect::Anthropic => (self.anthropic(), None),
            Dialect::Chat | Dialect::Responses => self.openai(),
            Dialect::Gemini => (self.google(), None),
        };
        ErrorText {
            status: self.status(dialect),
            kind,
            code,
            message: self.message(),
        }
    }

    fn status(self, dialect: Dialect) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::TooLarge => 413,
            Self::RateLimited => 429,
            Self::Server => 500,
            Self::Unavailable => 503,
            Self::Overloaded => match dialect {
                Dialect::Anthropic => 529,
                Dialect::Chat | Dialect::Responses | Dialect::Gemini => 503,
            },
        }
    }

    fn anthropic(self) -> &'static str {
        match self {
            Self::BadRequest => "invalid_request_error",
            Self::Unauthorized => "authentication_error",
            Self::Forbidden => "permission_error",
            Self::NotFound => "not_found_error",
            Self::TooLarge => "request_too_large",
            Self::RateLimited => "rate_limit_error",
            Self::Server | Self::Unavailable => "api_error",
            Self::Overloaded => "overloaded_error",
        }
    }

    fn openai(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::BadRequest => ("invalid_request_error", Some("invalid_value")),
            Self::Unauthorized => ("invalid_request_error", Some("invalid_api_key")),
            Self::Forbidden => (
                "request_forbidden",
                Some("unsupported_country_region_territory"),
            ),
            Self::NotFound => ("invalid_request_error", Some("model_not_found")),
            Self::TooLarge => ("invalid_request_error", Some("context_length_exceeded")),
            Self::RateLimited => ("requests", Some("rate_limit_exceeded")),
            Self::Server | Self::Unavailable => ("server_error", Some("server_error")),
            Self::Overloaded => ("service_unavailable_error", Some("server_is_overloaded")),
        }
    }

    fn google(self) -> &'static str {
        match self {
            Self::BadRequest | Self::TooLarge => "INVALID_ARGUMENT",
            Self::Unauthorized => "UNAUTHENTICATED",
            Self::Forbidden => "PERMISSION_DENIED",
            Self::NotFound => "NOT_FOUND",
            Self::RateLimited => "RESOURCE_EXHAUSTED",
            Self::Server => "INTERNAL",
            Self::Unavailable | Self::Overloaded => "UNAVAILABLE",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::BadRequest => "The request has a field that is not understood.",
            Self::Unauthorized => "The key is not valid.",
            Self::Forbidden => "The key may not use this model.",
            Self::NotFound => "There is no such model.",
            Self::TooLarge => "The request is too large.",
            Self::RateLimited => "Too many requests; wait a little.",
            Self::Server => "Something went wrong on the server.",
            Self::Unavailable => "The service is away.",
            Self::Overloaded => "Overloaded",
        }
    }
}

/// A response with a status other than 200.
#[derive(Clone, Debug)]
pub(crate) struct ErrorResponse {
    /// The HTTP status code.
    pub(crate) status: u16,
    /// Headers beside the content's type and length.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl ErrorResponse {
    /// A provider's response to this error; `message` replaces the default message.
    pub(crate) fn new(
        trouble: ProviderError,
        dialect: Dialect,
        message: Option<&str>,
        wait: Option<Duration>,
    ) -> Self {
        let error_text = trouble.text(dialect);
        let message = message.unwrap_or(error_text.message);
        let mut headers = Vec::new();
        let mut header = |name: &str, value: String| headers.push((name.to_owned(), value));
        let seconds = wait.map(|wait| wait.as_millis().div_ceil(1000));
        let body = match dialect {
            Dialect::Anthropic => {
                header("request-id", "req_011f4ke".to_owned());
                if let Some(seconds) = seconds {
                    header("retry-after", seconds.to_string());
                }
                let body = json!({
                    "type": "error",
                    "error": {"type": error_text.kind, "message": message},
                    "request_id": "req_011f4ke",
                });
                body.to_string()
            }
            Dialect::Chat | Dialect::Responses => {
                header("x-request-id", "req_0f4ke".to_owned());
                if let (Some(wait), Some(seconds)) = (wait, seconds) {
                    header("retry-after-ms", wait.as_millis().to_string());
                    header("retry-after", seconds.to_string());
                }
                pretty(&json!({"error": {
                    "message": message, "type": error_text.kind, "param": null, "code": error_text.code,
                }}))
            }
            // Google sends the time to wait in the body, not in a header.
            Dialect::Gemini => pretty(&google(error_text, message, wait)),
        };
        Self {
            status: error_text.status,
            headers,
            body,
        }
    }
}

pub(crate) fn google(error_text: ErrorText, message: &str, wait: Option<Duration>) -> Value {
    let mut error =
        json!({"code": error_text.status, "message": message, "status": error_text.kind});
    if let Some(wait) = wait {
        error["details"] = json!([{
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{}s", wait.as_secs_f64()),
        }]);
    }
    json!({"error": error})
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
