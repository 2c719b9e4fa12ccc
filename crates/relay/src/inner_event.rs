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
        // What is no text is no id, and is replaced like one of another form.
        InnerType::ResponseId => {
            let id = optional(raw.response_id.or(raw.id));
            InnerEvent::ResponseId(id.ok().flatten().unwrap_or_default())
        }
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
    let tool_name = required(nested.name.or(raw.name)).and_then(name)?;
    Ok(InnerEvent::ToolCallStart {
        id: tool_id(raw)?,
        tool_type: tool_type_of(tool_type.as_deref(), &tool_name),
        name: tool_name,
    })
}

/// The type of a tool: that which the upstream says, else that which tools of such names have here. The
/// tools of an upstream run there, so none is a worker of this server.
fn tool_type_of(text: Option<&str>, name: &str) -> ToolType {
    let known = text.and_then(|text| serde_json::from_value(Value::from(text)).ok());
    match known {
        Some(ToolType::Delegate) => ToolType::Function,
        Some(known) => known,
        None if name.starts_with("render_") => ToolType::Render,
        None if name.starts_with("ask_") => ToolType::SubAgent,
        None => ToolType::Function,
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
mod tests;
