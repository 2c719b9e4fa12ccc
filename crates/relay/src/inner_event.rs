//! One event of an upstream, parsed. Fields that an event does not need are ignored, whatever they are;
//! a field of the wrong kind that it needs makes it malformed, because what it said is lost.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use turnwire_event::TokenUsage;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CancelCode, ErrorCode, InnerType, Reason, ReasonToken, ToolType};

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

/// The fields of all types, unread: what an event does not need may be anything. Upstreams nest the
/// fields of a tool and of an error, or do not.
#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Field<'a>,
    /// The id of a status.
    #[serde(borrow)]
    event_type: Field<'a>,
    #[serde(borrow)]
    tool_id: Field<'a>,
    #[serde(borrow)]
    content: Field<'a>,
    /// Other names of `content`.
    #[serde(borrow)]
    chunk: Field<'a>,
    #[serde(borrow)]
    delta: Field<'a>,
    #[serde(borrow)]
    id: Field<'a>,
    /// Another name of `id`, of an event that has an id of its own beside it.
    #[serde(borrow)]
    tool_call_id: Field<'a>,
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    tool_type: Field<'a>,
    #[serde(borrow)]
    tool_call: Field<'a>,
    #[serde(borrow)]
    is_error: Field<'a>,
    #[serde(borrow)]
    response_id: Field<'a>,
    #[serde(borrow)]
    error: Field<'a>,
    #[serde(borrow)]
    code: Field<'a>,
    #[serde(borrow)]
    is_final: Field<'a>,
    #[serde(borrow)]
    sub_agent_id: Field<'a>,
    #[serde(borrow)]
    server: Field<'a>,
    #[serde(borrow)]
    tool_count: Field<'a>,
    #[serde(borrow)]
    progress: Field<'a>,
    #[serde(borrow)]
    total: Field<'a>,
    #[serde(borrow)]
    usage: Field<'a>,
}

/// A field, unread; absent and null are the same.
type Field<'a> = Option<&'a RawValue>;

#[derive(Default, Deserialize)]
struct RawTool<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(rename = "type", borrow)]
    tool_type: Field<'a>,
}

/// What an upstream says of a failure. A text is not read.
#[derive(Default, Deserialize)]
struct RawError<'a> {
    #[serde(borrow)]
    code: Field<'a>,
    #[serde(borrow)]
    sub_agent_id: Field<'a>,
    #[serde(borrow)]
    enricher_id: Field<'a>,
    #[serde(borrow)]
    reason: Field<'a>,
}

/// The counts of a `usage` event, beside `type` or in `usage`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawUsage {
    input_tokens: Option<Number>,
    output_tokens: Option<Number>,
    total_tokens: Option<Number>,
    reasoning_tokens: Option<Number>,
    cached_tokens: Option<Number>,
}

/// The types of an upstream that has names of its own, and what they are here.
pub type TypeMap = BTreeMap<String, InnerType>;

/// Parses the data of one block.
pub(crate) fn parse(data: &str, types: &TypeMap) -> Result<InnerEvent, MalformedEvent> {
    if data.trim() == SENTINEL {
        return Ok(InnerEvent::Sentinel);
    }
    let raw: RawEvent<'_> = serde_json::from_str(data).map_err(|_| MalformedEvent)?;
    let Some(kind) = raw.kind else {
        return status(&raw);
    };
    let kind = text(kind)?;
    let mapped = types.get(kind.as_ref()).copied();
    let Some(kind) = mapped.or_else(|| InnerType::of_name(&kind)) else {
        return Ok(InnerEvent::Unknown);
    };
    Ok(match kind {
        InnerType::Text => InnerEvent::Text(required(raw.content())?),
        InnerType::Reasoning => InnerEvent::Reasoning(required(raw.content())?),
        InnerType::Thinking => InnerEvent::Thinking(optional(raw.content())?.unwrap_or_default()),
        InnerType::ToolCallStart => tool_call_start(&raw)?,
        InnerType::ToolCallEnd => InnerEvent::ToolCallEnd {
            is_error: value(raw.is_error)?.unwrap_or_default(),
            id: tool_id(&raw)?,
        },
        InnerType::ToolResult => InnerEvent::ToolResult {
            content: value(raw.content())?.unwrap_or_default(),
            id: tool_id(&raw)?,
        },
        InnerType::Usage => InnerEvent::Usage(usage(data, raw.usage)?),
        InnerType::ResponseId => InnerEvent::ResponseId(required(raw.response_id.or(raw.id))?),
        InnerType::Episode => InnerEvent::Episode,
        InnerType::Completed => InnerEvent::Completed,
        InnerType::Error => failure(&raw),
        InnerType::SupportContent => InnerEvent::SupportContent {
            text: required(raw.content())?,
            sub_agent_id: optional(raw.sub_agent_id)?.map(name).transpose()?,
        },
        InnerType::McpListToolsStart => InnerEvent::McpListToolsStart(server(raw.server)?),
        InnerType::McpListToolsCompleted => InnerEvent::McpListToolsCompleted {
            server: server(raw.server)?,
            tool_count: u32::try_from(count(value(raw.tool_count)?)).unwrap_or(u32::MAX),
        },
        InnerType::McpSessionStart => InnerEvent::McpSessionStart(server(raw.server)?),
        InnerType::McpSessionProgress => InnerEvent::McpSessionProgress {
            server: server(raw.server)?,
            progress: value(raw.progress)?.unwrap_or_default(),
            total: value(raw.total)?,
        },
        InnerType::Cancelled => {
            let code = code_text(failure_codes(&raw).code).or_else(|| code_text(raw.code));
            InnerEvent::Cancelled(match code.as_deref() {
                Some("IDLE_TIMEOUT") => CancelCode::IdleTimeout,
                _ => CancelCode::RequestCancelled,
            })
        }
    })
}

impl<'a> RawEvent<'a> {
    /// What the event is about, under any of its names.
    fn content(&self) -> Field<'a> {
        self.content.or(self.chunk).or(self.delta)
    }
}

/// A text of JSON, without a copy if it has no escapes.
fn text(field: &RawValue) -> Result<Cow<'_, str>, MalformedEvent> {
    let json = field.get();
    let inner = json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match inner.ok_or(MalformedEvent)? {
        plain if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
        _ => {
            let text = serde_json::from_str(json).map_err(|_| MalformedEvent)?;
            Ok(Cow::Owned(text))
        }
    }
}

fn optional(field: Field<'_>) -> Result<Option<String>, MalformedEvent> {
    field
        .map(|field| text(field).map(Cow::into_owned))
        .transpose()
}

fn required(field: Field<'_>) -> Result<String, MalformedEvent> {
    optional(field)?.ok_or(MalformedEvent)
}

fn value<'a, T: Deserialize<'a>>(field: Field<'a>) -> Result<Option<T>, MalformedEvent> {
    let parsed = field.map(|field| serde_json::from_str(field.get()));
    parsed.transpose().map_err(|_| MalformedEvent)
}

/// The status shape of a stream writer, which has no `type`.
fn status(raw: &RawEvent<'_>) -> Result<InnerEvent, MalformedEvent> {
    let sub_agent_id = raw.sub_agent_id.and_then(|id| short(text(id).ok()?));
    Ok(InnerEvent::Status {
        event_id: required(raw.event_type)?,
        sub_agent_id,
        tool_id: code_text(raw.tool_id),
    })
}

fn tool_call_start(raw: &RawEvent<'_>) -> Result<InnerEvent, MalformedEvent> {
    let nested: RawTool<'_> = value(raw.tool_call)?.unwrap_or_default();
    let tool_type = code_text(raw.tool_type.or(nested.tool_type));
    Ok(InnerEvent::ToolCallStart {
        id: tool_id(raw)?,
        name: required(nested.name.or(raw.name)).and_then(name)?,
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

fn tool_id(raw: &RawEvent<'_>) -> Result<String, MalformedEvent> {
    let nested: RawTool<'_> = value(raw.tool_call)?.unwrap_or_default();
    required(nested.id.or(raw.tool_call_id).or(raw.id)).and_then(name)
}

/// An id or a name of bounded length.
fn name(text: String) -> Result<String, MalformedEvent> {
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len());
    fits.then_some(text).ok_or(MalformedEvent)
}

/// A text that has the form of an id or a code: of free text nothing is kept.
fn short(text: Cow<'_, str>) -> Option<String> {
    ReasonToken::new(&text).is_some().then(|| text.into_owned())
}

/// A text, if the field is one.
fn code_text(field: Field<'_>) -> Option<String> {
    field
        .and_then(|field| text(field).ok())
        .map(Cow::into_owned)
}

/// The name of an MCP server, `mcp` where the upstream does not say.
fn server(field: Field<'_>) -> Result<String, MalformedEvent> {
    optional(field)?.map_or_else(|| Ok("mcp".to_owned()), name)
}

/// A count: fractions are cut off, and none is below zero.
fn count(number: Option<Number>) -> u64 {
    let number = number.unwrap_or_else(|| 0.into());
    let whole = || number.as_f64().unwrap_or_default() as u64;
    number.as_u64().unwrap_or_else(whole)
}

fn usage(data: &str, nested: Field<'_>) -> Result<TokenUsage, MalformedEvent> {
    let json = nested.map_or(data, RawValue::get);
    let raw: RawUsage = serde_json::from_str(json).map_err(|_| MalformedEvent)?;
    let (input_tokens, output_tokens) = (count(raw.input_tokens), count(raw.output_tokens));
    let sum = input_tokens.saturating_add(output_tokens);
    Ok(TokenUsage {
        input_tokens,
        output_tokens,
        total_tokens: raw.total_tokens.map_or(sum, |total| count(Some(total))),
        reasoning_tokens: count(raw.reasoning_tokens),
        cached_tokens: count(raw.cached_tokens),
        ..TokenUsage::default()
    })
}

/// What is said of a failure in codes; a mere text says nothing.
fn failure_codes<'a>(raw: &RawEvent<'a>) -> RawError<'a> {
    value(raw.error).ok().flatten().unwrap_or_default()
}

/// A failure. Its text is not read: it may be the upstream's exception (S1-093). A code that is not
/// one of the platform's counts as internal, and an error is final unless it says otherwise.
fn failure(raw: &RawEvent<'_>) -> InnerEvent {
    let nested = failure_codes(raw);
    let code = code_text(nested.code).or_else(|| code_text(raw.code));
    let code = code.and_then(|code| serde_json::from_value(Value::from(code)).ok());
    // Ids and reasons reach clients: free text does not.
    let id = |field: Field<'_>| field.and_then(|field| short(text(field).ok()?));
    let reason = code_text(nested.reason);
    InnerEvent::Error {
        error: TurnError {
            sub_agent_id: id(nested.sub_agent_id.or(raw.sub_agent_id)),
            enricher_id: id(nested.enricher_id),
            reason: reason.and_then(|reason| Reason::parse(&reason)),
            ..code.unwrap_or(ErrorCode::InternalError).into()
        },
        is_final: value(raw.is_final).ok().flatten().unwrap_or(true),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(event: &Value) -> Result<InnerEvent, MalformedEvent> {
        parse(&event.to_string(), &TypeMap::new())
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

    #[test]
    fn only_the_fields_that_an_event_needs_are_read() {
        // A dump of a model with optional fields, and fields of other events.
        let text = json!({
            "type": "text", "content": "x", "is_error": null, "id": 7, "usage": [], "tool_call": "no",
            "error": null, "chunk": 7, "delta": {"a": 1}, "name": {}, "is_final": "maybe",
        });
        assert_eq!(read(&text), Ok(InnerEvent::Text("x".into())));
        let weather = json!({"type": "weather", "id": 7, "content": [1]});
        assert_eq!(read(&weather), Ok(InnerEvent::Unknown));
        // A message of a tool has an id of its own.
        let result = json!({"type": "tool_result", "id": "m1", "tool_call_id": "c1", "content": 1});
        let expected = InnerEvent::ToolResult {
            id: "c1".into(),
            content: json!(1),
        };
        assert_eq!(read(&result), Ok(expected));
        let end = json!({"type": "tool_call_end", "id": "c1", "is_error": null});
        let expected = InnerEvent::ToolCallEnd {
            id: "c1".into(),
            is_error: false,
        };
        assert_eq!(read(&end), Ok(expected));
        let usage = json!({
            "type": "usage", "input_tokens": 2.0, "output_tokens": 3, "cached_tokens": null, "reasoning_tokens": -1,
        });
        let expected = TokenUsage {
            input_tokens: 2,
            output_tokens: 3,
            total_tokens: 5,
            ..TokenUsage::default()
        };
        assert_eq!(read(&usage), Ok(InnerEvent::Usage(expected)));
        let escaped = json!({"type": "text", "content": "a\n\"b\" \u{1f600}"});
        let expected = InnerEvent::Text("a\n\"b\" \u{1f600}".into());
        assert_eq!(read(&escaped), Ok(expected));
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
            assert_eq!(parse(data, &TypeMap::new()), Err(MalformedEvent), "{data}");
        }
        assert_eq!(
            parse("{\"type\":\"weather\"}", &TypeMap::new()),
            Ok(InnerEvent::Unknown)
        );
        assert_eq!(parse(" [DONE] ", &TypeMap::new()), Ok(InnerEvent::Sentinel));
    }

    proptest! {
        #[test]
        fn no_data_breaks_the_parser(data in "\\PC{0,200}", kind in "[a-z_]{0,20}", content in "\\PC{0,50}") {
            let _ = parse(&data, &TypeMap::new());
            let event = json!({"type": kind, "content": content, "id": content, "usage": content, "error": content});
            let _ = read(&event);
        }
    }

    // S1-033
    #[test]
    fn own_names_of_an_upstream_mean_what_the_map_says() {
        let types = TypeMap::from([
            ("token".to_owned(), InnerType::Text),
            ("text".to_owned(), InnerType::Reasoning),
            ("done".to_owned(), InnerType::Completed),
        ]);
        let read = |json: &str| parse(json, &types).expect("an event");
        let token = read(r#"{"type":"token","content":"a"}"#);
        assert_eq!(token, InnerEvent::Text("a".into()));
        let text = read(r#"{"type":"text","content":"b"}"#);
        assert_eq!(text, InnerEvent::Reasoning("b".into()));
        assert_eq!(read(r#"{"type":"done"}"#), InnerEvent::Completed);
        assert_eq!(read(r#"{"type":"completed"}"#), InnerEvent::Completed);
        assert_eq!(read(r#"{"type":"toke"}"#), InnerEvent::Unknown);
    }
}
