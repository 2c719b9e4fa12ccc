//! The tools of a server: all pages of its list, within limits. They are listed when a pack is
//! loaded and never in a turn (S2-001).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;

use crate::input::InputSchema;
use crate::mcp::connection::{ResultSender, ResultSlot};
use crate::mcp::deadline::Deadline;
use crate::mcp::error::one_line;
use crate::mcp::json_text::{compact_json, value_bytes_estimate};
use crate::secrets::Secrets;

/// Tools of one server; far fewer confuse a model.
const TOOLS_MAX: usize = 256;
const PAGES_MAX: usize = 8;
/// The limit of the schema of one tool, which is sent to the model with every call.
const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// The memory of the schemas of a server as values: some 1 MiB of text, more than a model accepts.
const SCHEMAS_MEMORY_MAX: usize = 32 << 20;
/// The limit of a name; most providers accept fewer characters.
const NAME_CHARS_MAX: usize = 128;
/// The limit of the cursor of a page, which is sent back.
const CURSOR_BYTES_MAX: usize = 64 << 10;
/// The limit of a description, which is sent to the model with every call.
const DESCRIPTION_CHARS_MAX: usize = 8_192;

/// A tool as its server describes it.
#[derive(Clone, Debug)]
pub(crate) struct ListedTool {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The schema of its input, or why it cannot be used.
    pub(crate) input: Result<Arc<InputSchema>, String>,
}

/// Why there is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListError {
    #[error(
        "it did not list its tools within {} ms; set a longer `start_timeout_ms`",
        .0.as_millis()
    )]
    Timeout(Duration),
    #[error("it refused to list its tools: {0}")]
    Refused(String),
    #[error(
        "it disconnected while it listed its tools; run its `command` by hand, or check the server at its `url`"
    )]
    Disconnected,
    #[error("its answer is not a list of tools")]
    Invalid,
    #[error("it has more than {TOOLS_MAX} tools; configure it to offer fewer")]
    TooManyTools,
    #[error("its list of tools has more than {PAGES_MAX} pages")]
    TooManyPages,
}

/// Lists every tool of the server.
pub(crate) async fn list_tools(
    peer: &Peer<RoleClient>,
    deadline: Deadline,
) -> Result<Vec<ListedTool>, ListError> {
    let pages = timeout_at(deadline.at, list_pages(peer)).await;
    pages.unwrap_or(Err(ListError::Timeout(deadline.timeout)))
}

async fn list_pages(peer: &Peer<RoleClient>) -> Result<Vec<ListedTool>, ListError> {
    let mut listed = Vec::new();
    let mut memory = SCHEMAS_MEMORY_MAX;
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = list_page(peer, params).await?;
        if listed.len() + page.tools.len() > TOOLS_MAX {
            return Err(ListError::TooManyTools);
        }
        // Compiling the schemas takes long enough to block other tasks.
        let tools = page.tools.into_iter();
        let compiled = spawn_blocking(move || {
            let tools: Vec<_> = tools.map(|tool| compile(tool, &mut memory)).collect();
            (tools, memory)
        });
        let (tools, memory_left) = compiled.await.map_err(|_| ListError::Invalid)?;
        listed.extend(tools);
        memory = memory_left;
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(listed);
        }
    }
    Err(ListError::TooManyPages)
}

async fn list_page(
    peer: &Peer<RoleClient>,
    params: PaginatedRequestParams,
) -> Result<ToolsPage, ListError> {
    let slot = ResultSlot::new(ToolsPage::read);
    let reader: ResultSender = slot.clone();
    let mut request = ListToolsRequest::with_param(params);
    request.extensions.insert(reader);
    let request = ClientRequest::ListToolsRequest(request);
    let options = PeerRequestOptions::no_options();
    let sent = peer.send_request_with_option(request, options).await;
    let response = sent.map_err(list_error)?.await_response().await;
    response.map_err(list_error)?;
    slot.take().flatten().ok_or(ListError::Invalid)
}

/// A page of the list. Values are made of the schemas only, one by one.
struct ToolsPage {
    tools: Vec<PageTool>,
    next_cursor: Option<String>,
}

struct PageTool {
    name: String,
    description: String,
    /// Compact JSON; `None` if it has more than [`SCHEMA_BYTES_MAX`] bytes.
    schema: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageShape<'a> {
    #[serde(borrow)]
    tools: PageTools<'a>,
    next_cursor: Option<String>,
}

/// The first tools, one more than allowed.
struct PageTools<'a>(Vec<ToolShape<'a>>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolShape<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    description: Option<String>,
    #[serde(borrow)]
    input_schema: &'a RawValue,
}

impl<'de: 'a, 'a> Deserialize<'de> for PageTools<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ToolsVisitor;
        impl<'de> Visitor<'de> for ToolsVisitor {
            type Value = PageTools<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of tools")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut tools = Vec::new();
                while tools.len() <= TOOLS_MAX {
                    match list.next_element()? {
                        Some(tool) => tools.push(tool),
                        None => return Ok(PageTools(tools)),
                    }
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(PageTools(tools))
            }
        }
        deserializer.deserialize_seq(ToolsVisitor)
    }
}

impl ToolsPage {
    /// Reads the result of a request; `None` if it is not a list of tools.
    fn read(result: &str) -> Option<Self> {
        let page: PageShape<'_> = serde_json::from_str(result).ok()?;
        let cursor = page.next_cursor;
        if cursor
            .as_ref()
            .is_some_and(|cursor| cursor.len() > CURSOR_BYTES_MAX)
        {
            return None;
        }
        let tools = page.tools.0.into_iter().map(|tool| {
            let schema = tool.input_schema.get();
            let description = tool.description.unwrap_or_default();
            schema.starts_with('{').then(|| PageTool {
                name: tool.name.chars().take(NAME_CHARS_MAX).collect(),
                description: description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
                schema: compact_json(schema, SCHEMA_BYTES_MAX, &Secrets::default()),
            })
        });
        Some(Self {
            tools: tools.collect::<Option<_>>()?,
            next_cursor: cursor,
        })
    }
}

/// The number of tools in the result of a request that can be used; `None` if it is not a list of tools.
#[cfg(feature = "fuzzing")]
pub(crate) fn usable_tools(result: &str) -> Option<usize> {
    let page = ToolsPage::read(result)?;
    let mut memory = SCHEMAS_MEMORY_MAX;
    let tools = page.tools.into_iter();
    let usable = tools.filter_map(|tool| compile(tool, &mut memory).input.ok());
    Some(usable.count())
}

fn list_error(error: ServiceError) -> ListError {
    match error {
        ServiceError::McpError(error) => ListError::Refused(one_line(&error.message)),
        ServiceError::UnexpectedResponse => ListError::Invalid,
        _ => ListError::Disconnected,
    }
}

/// Compiles the schema of a tool, and takes its memory from `memory`.
fn compile(tool: PageTool, memory: &mut usize) -> ListedTool {
    ListedTool {
        name: tool.name,
        description: tool.description,
        input: compile_schema(tool.schema.as_deref(), memory),
    }
}

fn compile_schema(schema: Option<&str>, memory: &mut usize) -> Result<Arc<InputSchema>, String> {
    let schema = schema.ok_or_else(|| {
        format!(
            "its input schema has more than {SCHEMA_BYTES_MAX} bytes, or text that is not valid"
        )
    })?;
    let left = memory.checked_sub(value_bytes_estimate(schema));
    *memory = left.ok_or("the input schemas of its server take too much memory together")?;
    let schema: Value = serde_json::from_str(schema)
        .map_err(|error| format!("its input schema cannot be used: {error}"))?;
    let compiled = InputSchema::without_hard_patterns(&schema).map(Arc::new);
    compiled.map_err(|error| format!("its input schema cannot be used: {}", one_line(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(schema: &str, tools: usize) -> String {
        let tool = format!(r#"{{"name":"a","description":null,"inputSchema":{schema}}},"#);
        let tools = tool.repeat(tools);
        format!(
            r#"{{"tools":[{}],"nextCursor":"b"}}"#,
            tools.trim_end_matches(',')
        )
    }

    #[test]
    fn page_is_read_within_limits() {
        let read = ToolsPage::read(&page(r#"{ "type": "object" }"#, 2)).expect("a page");
        assert_eq!(
            (read.tools.len(), read.next_cursor.as_deref()),
            (2, Some("b"))
        );
        assert_eq!(
            read.tools[0].schema.as_deref(),
            Some(r#"{"type":"object"}"#)
        );
        let many = ToolsPage::read(&page("{}", 10_000)).expect("a page");
        assert_eq!(many.tools.len(), TOOLS_MAX + 1);
        let large = format!(r#"{{"description":"{}"}}"#, "x".repeat(SCHEMA_BYTES_MAX));
        let large = ToolsPage::read(&page(&large, 1)).expect("a page");
        assert_eq!(large.tools[0].schema, None);
        assert!(ToolsPage::read(&page("[]", 1)).is_none());
        assert!(ToolsPage::read(r#"{"content":[]}"#).is_none());
    }

    #[test]
    fn schemas_of_a_server_share_one_limit_of_memory() {
        let objects = r#"{"":0},"#.repeat(SCHEMA_BYTES_MAX / 8);
        let schema = format!(r#"{{"type":"object","examples":[{objects}0]}}"#);
        let read = ToolsPage::read(&page(&schema, 20)).expect("a page");
        let mut memory = SCHEMAS_MEMORY_MAX;
        let tools = read.tools.into_iter();
        let usable = tools.filter_map(|tool| compile(tool, &mut memory).input.ok());
        let count = usable.count();
        assert!((1..10).contains(&count), "{count}");
        let small = compile_schema(Some(r#"{"type":"object"}"#), &mut memory);
        assert!(small.is_ok(), "there is room for a small one");
    }
}
