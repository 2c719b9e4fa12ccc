//! One event of an upstream, parsed. Fields that an event does not need are ignored; a field of the
//! wrong kind makes the event malformed, because what it said is lost.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::TokenUsage;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CancelCode, ErrorCode, Reason, ReasonToken, ToolType};

use crate::vocabulary::InnerType;

/// The longest id or name that an upstream may give: several times what any framework makes.
pub(crate) const NAME_BYTES_MAX: usize = 256;
/// The data of the block that ends a stream.
pub(crate) const SENTINEL: &str = "[DONE]";

/// An event of an upstream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InnerEvent {
    Text(String),
    Reasoning(String),
    Thinking(String),
    ToolCallStart {
        id: String,
        name: String,
        tool_type: ToolType,
    },
    ToolCallEnd {
        id: String,
        is_error: bool,
    },
    ToolResult {
        id: String,
        content: Value,
    },
    Usage(TokenUsage),
    ResponseId(String),
    Episode,
    Completed,
    Error {
        error: TurnError,
        is_final: bool,
    },
    SupportContent {
        text: String,
        sub_agent_id: Option<String>,
    },
    McpListToolsStart(String),
    McpListToolsCompleted {
        server: String,
        tool_count: u32,
    },
    McpSessionStart(String),
    McpSessionProgress {
        server: String,
        progress: f64,
        total: Option<f64>,
    },
    Cancelled(CancelCode),
    /// Progress, as an id of the registry, and the sub-agent or the tool call that reports it.
    Status {
        event_id: String,
        sub_agent_id: Option<String>,
        tool_id: Option<String>,
    },
    /// The block `[DONE]`, after which nothing comes.
    Sentinel,
    /// An event without content: it shows that the upstream is alive.
    Silent,
    /// A type that is not in the vocabulary.
    Unknown,
}

/// What an upstream sent is not an event: not JSON, or a field is missing or of the wrong kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an event of the inner vocabulary")]
pub(crate) struct MalformedEvent;

/// The fields of all types. Upstreams nest those of a tool, of an error and of a status, or do not.
#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Cow<'a, str>>,
    /// The id of a status.
    #[serde(borrow, default)]
    event_type: Option<Cow<'a, str>>,
    #[serde(default)]
    tool_id: Option<String>,
    #[serde(default, alias = "chunk", alias = "delta")]
    content: Option<Value>,
    #[serde(default, alias = "tool_call_id")]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    tool_type: Option<Cow<'a, str>>,
    #[serde(default)]
    tool_call: Option<RawTool>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    response_id: Option<String>,
    #[serde(default)]
    error: Option<RawFailure>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    is_final: Option<bool>,
    #[serde(default)]
    sub_agent_id: Option<String>,
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    tool_count: Option<u32>,
    #[serde(default)]
    progress: Option<f64>,
    #[serde(default)]
    total: Option<f64>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct RawTool {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(rename = "type", default)]
    tool_type: Option<String>,
}

/// What an upstream says of a failure. A text is not read.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawFailure {
    Codes(RawError),
    Text(IgnoredAny),
}

impl RawFailure {
    fn codes(self) -> RawError {
        match self {
            Self::Codes(codes) => codes,
            Self::Text(_) => RawError::default(),
        }
    }
}

#[derive(Default, Deserialize)]
struct RawError {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    sub_agent_id: Option<String>,
    #[serde(default)]
    enricher_id: Option<String>,
    #[serde(default)]
    reason: Option<String>,
}

/// The counts of a `usage` event, beside `type` or in `usage`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawUsage {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: Option<u64>,
    reasoning_tokens: u64,
    cached_tokens: u64,
}

/// Parses the data of one block.
pub(crate) fn parse(data: &str) -> Result<InnerEvent, MalformedEvent> {
    if data.trim() == SENTINEL {
        return Ok(InnerEvent::Sentinel);
    }
    let raw: RawEvent<'_> = serde_json::from_str(data).map_err(|_| MalformedEvent)?;
    let Some(kind) = raw.kind.as_deref() else {
        return status(raw);
    };
    let Some(kind) = InnerType::of_name(kind) else {
        return Ok(InnerEvent::Unknown);
    };
    Ok(match kind {
        InnerType::Text => InnerEvent::Text(required_text(raw.content)?),
        InnerType::Reasoning => InnerEvent::Reasoning(required_text(raw.content)?),
        InnerType::Thinking => InnerEvent::Thinking(match raw.content {
            None => String::new(),
            content => required_text(content)?,
        }),
        InnerType::ToolCallStart => tool_call_start(raw)?,
        InnerType::ToolCallEnd => InnerEvent::ToolCallEnd {
            is_error: raw.is_error,
            id: tool_id(raw)?,
        },
        InnerType::ToolResult => InnerEvent::ToolResult {
            content: raw.content.clone().unwrap_or(Value::Null),
            id: tool_id(raw)?,
        },
        InnerType::Usage => InnerEvent::Usage(usage(data, raw.usage)?),
        InnerType::ResponseId => {
            InnerEvent::ResponseId(raw.response_id.or(raw.id).ok_or(MalformedEvent)?)
        }
        InnerType::Episode => InnerEvent::Episode,
        InnerType::Completed => InnerEvent::Completed,
        InnerType::Error => failure(raw),
        InnerType::SupportContent => InnerEvent::SupportContent {
            text: required_text(raw.content)?,
            sub_agent_id: raw.sub_agent_id.map(name).transpose()?,
        },
        InnerType::McpListToolsStart => InnerEvent::McpListToolsStart(server(raw.server)?),
        InnerType::McpListToolsCompleted => InnerEvent::McpListToolsCompleted {
            server: server(raw.server)?,
            tool_count: raw.tool_count.unwrap_or_default(),
        },
        InnerType::McpSessionStart => InnerEvent::McpSessionStart(server(raw.server)?),
        InnerType::McpSessionProgress => InnerEvent::McpSessionProgress {
            server: server(raw.server)?,
            progress: raw.progress.unwrap_or_default(),
            total: raw.total,
        },
        InnerType::Cancelled => {
            let code = raw.error.and_then(|error| error.codes().code).or(raw.code);
            InnerEvent::Cancelled(match code.as_deref() {
                Some("IDLE_TIMEOUT") => CancelCode::IdleTimeout,
                _ => CancelCode::RequestCancelled,
            })
        }
    })
}

/// The status shape of a stream writer, which has no `type`.
fn status(raw: RawEvent<'_>) -> Result<InnerEvent, MalformedEvent> {
    let event_id = raw.event_type.ok_or(MalformedEvent)?;
    Ok(InnerEvent::Status {
        event_id: event_id.into_owned(),
        sub_agent_id: raw.sub_agent_id.map(name).transpose()?,
        tool_id: raw.tool_id,
    })
}

fn required_text(content: Option<Value>) -> Result<String, MalformedEvent> {
    match content {
        Some(Value::String(text)) => Ok(text),
        _ => Err(MalformedEvent),
    }
}

fn tool_call_start(raw: RawEvent<'_>) -> Result<InnerEvent, MalformedEvent> {
    let nested = raw.tool_call.unwrap_or_default();
    let tool_type = raw.tool_type.map(Cow::into_owned).or(nested.tool_type);
    Ok(InnerEvent::ToolCallStart {
        id: nested.id.or(raw.id).ok_or(MalformedEvent).and_then(name)?,
        name: nested
            .name
            .or(raw.name)
            .ok_or(MalformedEvent)
            .and_then(name)?,
        tool_type: tool_type_of(tool_type.as_deref()),
    })
}

/// The type of a tool. The tools of an upstream run there, so none is a worker of this server.
fn tool_type_of(text: Option<&str>) -> ToolType {
    let known = text.and_then(|text| serde_json::from_value(Value::from(text)).ok());
    match known {
        None | Some(ToolType::Delegate) => ToolType::Function,
        Some(known) => known,
    }
}

fn tool_id(raw: RawEvent<'_>) -> Result<String, MalformedEvent> {
    let nested = raw.tool_call.and_then(|tool| tool.id);
    nested.or(raw.id).ok_or(MalformedEvent).and_then(name)
}

/// An id or a name of bounded length.
fn name(text: String) -> Result<String, MalformedEvent> {
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len());
    fits.then_some(text).ok_or(MalformedEvent)
}

/// The name of an MCP server, `mcp` where the upstream does not say.
fn server(text: Option<String>) -> Result<String, MalformedEvent> {
    text.map_or_else(|| Ok("mcp".to_owned()), name)
}

fn usage(data: &str, nested: Option<&RawValue>) -> Result<TokenUsage, MalformedEvent> {
    let json = nested.map_or(data, RawValue::get);
    let raw: RawUsage = serde_json::from_str(json).map_err(|_| MalformedEvent)?;
    let sum = raw.input_tokens.saturating_add(raw.output_tokens);
    Ok(TokenUsage {
        input_tokens: raw.input_tokens,
        output_tokens: raw.output_tokens,
        total_tokens: raw.total_tokens.unwrap_or(sum),
        reasoning_tokens: raw.reasoning_tokens,
        cached_tokens: raw.cached_tokens,
        ..TokenUsage::default()
    })
}

/// A failure. Its text is not read: it may be the upstream's exception (S1-093). A code that is not
/// one of the platform's counts as internal, and an error is final unless it says otherwise.
fn failure(raw: RawEvent<'_>) -> InnerEvent {
    let nested = raw.error.map(RawFailure::codes).unwrap_or_default();
    let code = nested.code.or(raw.code);
    let code = code.and_then(|code| serde_json::from_value(Value::from(code)).ok());
    // Ids and reasons reach clients: free text does not.
    let short = |text: Option<String>| text.filter(|text| ReasonToken::new(text).is_some());
    InnerEvent::Error {
        error: TurnError {
            sub_agent_id: short(nested.sub_agent_id.or(raw.sub_agent_id)),
            enricher_id: short(nested.enricher_id),
            reason: nested.reason.and_then(|reason| Reason::parse(&reason)),
            ..code.unwrap_or(ErrorCode::InternalError).into()
        },
        is_final: raw.is_final.unwrap_or(true),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(event: &Value) -> Result<InnerEvent, MalformedEvent> {
        parse(&event.to_string())
    }

    // S1-032
    #[test]
    fn nested_and_flat_fields_mean_the_same() {
        let flat =
            json!({"type": "tool_call_start", "id": "c1", "name": "search", "tool_type": "mcp"});
        let nested = json!({"type": "tool_call_start", "tool_call": {"id": "c1", "name": "search", "type": "mcp"}});
        assert_eq!(read(&flat), read(&nested));
        assert_eq!(
            read(&flat),
            Ok(InnerEvent::ToolCallStart {
                id: "c1".into(),
                name: "search".into(),
                tool_type: ToolType::Mcp,
            })
        );
        let flat = json!({"type": "error", "code": "RATE_LIMIT_ERROR"});
        let nested =
            json!({"type": "error", "error": {"code": "RATE_LIMIT_ERROR"}, "is_final": true});
        assert_eq!(read(&flat), read(&nested));
        let flat = json!({"type": "usage", "input_tokens": 2, "output_tokens": 3});
        let nested = json!({"type": "usage", "usage": {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}});
        assert_eq!(read(&flat), read(&nested));
    }

    // S1-093
    #[test]
    fn free_text_of_a_failure_is_not_read() {
        let told = json!({
            "type": "error",
            "error": {
                "code": "NullPointerException at db-7",
                "sub_agent_id": "shop at db-7",
                "enricher_id": "/srv/secret",
                "reason": "Host db-7 is down",
                "message": "db-7",
            },
        });
        let Ok(InnerEvent::Error { error, is_final }) = read(&told) else {
            panic!("an error")
        };
        assert!(is_final);
        assert_eq!(error, ErrorCode::InternalError.into());
        let kept = json!({"type": "error", "error": {"code": "CCS_ENVELOPE_ERROR", "enricher_id": "offer_search", "reason": "upstream_timeout"}});
        let Ok(InnerEvent::Error { error, .. }) = read(&kept) else {
            panic!("an error")
        };
        assert_eq!(
            error,
            TurnError::envelope("offer_search", Reason::UpstreamTimeout)
        );
    }

    #[test]
    fn ids_and_names_are_bounded() {
        let with = |id: &str| json!({"type": "tool_call_end", "id": id});
        assert!(read(&with(&"i".repeat(NAME_BYTES_MAX))).is_ok());
        for bad in ["", &"i".repeat(NAME_BYTES_MAX + 1)] {
            assert_eq!(read(&with(bad)), Err(MalformedEvent));
        }
        let worker =
            json!({"type": "tool_call_start", "id": "c1", "name": "n", "tool_type": "delegate"});
        let Ok(InnerEvent::ToolCallStart { tool_type, .. }) = read(&worker) else {
            panic!("a tool")
        };
        assert_eq!(tool_type, ToolType::Function, "no worker of this server");
    }

    #[test]
    fn what_is_no_event_is_malformed_and_new_types_are_not() {
        for data in [
            "",
            "Hello",
            "[1]",
            "{}",
            "null",
            "{\"type\":7}",
            "{\"type\":\"text\"}",
            "{\"type\":\"text\",\"content\":7}",
            "{\"event_type\":7}",
        ] {
            assert_eq!(parse(data), Err(MalformedEvent), "{data}");
        }
        assert_eq!(parse("{\"type\":\"weather\"}"), Ok(InnerEvent::Unknown));
        assert_eq!(parse(" [DONE] "), Ok(InnerEvent::Sentinel));
    }

    proptest! {
        #[test]
        fn no_data_breaks_the_parser(data in "\\PC{0,200}", kind in "[a-z_]{0,20}", content in "\\PC{0,50}") {
            let _ = parse(&data);
            let event = json!({"type": kind, "content": content, "id": content, "usage": content, "error": content});
            let _ = read(&event);
        }
    }
}
