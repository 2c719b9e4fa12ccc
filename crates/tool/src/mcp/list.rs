//! The tools of a server: all pages of its list, within limits. They are listed when a pack is
//! loaded and never in a turn (S2-001).

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::PaginatedRequestParams;
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;

use crate::input::InputSchema;
use crate::mcp::deadline::Deadline;
use crate::mcp::error::one_line;
use crate::tool::json_bytes;

/// Tools of one server; far fewer confuse a model.
const TOOLS_MAX: usize = 256;
const PAGES_MAX: usize = 8;
/// The limit of the schema of one tool, which is sent to the model with every call.
const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// The limit of a name; most providers accept fewer characters.
const NAME_CHARS_MAX: usize = 128;
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
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(params)).await.map_err(list_error)?;
        if listed.len() + page.tools.len() > TOOLS_MAX {
            return Err(ListError::TooManyTools);
        }
        // Compiling the schemas takes long enough to block other tasks.
        let tools = page.tools;
        let compiled = spawn_blocking(move || tools.into_iter().map(compile).collect::<Vec<_>>());
        listed.extend(compiled.await.map_err(|_| ListError::Invalid)?);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(listed);
        }
    }
    Err(ListError::TooManyPages)
}

fn list_error(error: ServiceError) -> ListError {
    match error {
        ServiceError::McpError(error) => ListError::Refused(one_line(&error.message)),
        ServiceError::UnexpectedResponse => ListError::Invalid,
        _ => ListError::Disconnected,
    }
}

fn compile(tool: rmcp::model::Tool) -> ListedTool {
    let description = tool.description.unwrap_or_default();
    let schema = Value::Object(tool.input_schema.as_ref().clone());
    ListedTool {
        name: tool.name.chars().take(NAME_CHARS_MAX).collect(),
        description: description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
        input: compile_schema(&schema),
    }
}

fn compile_schema(schema: &Value) -> Result<Arc<InputSchema>, String> {
    if json_bytes(schema) > SCHEMA_BYTES_MAX {
        return Err(format!(
            "its input schema has more than {SCHEMA_BYTES_MAX} bytes"
        ));
    }
    let compiled = InputSchema::without_hard_patterns(schema).map(Arc::new);
    compiled.map_err(|error| format!("its input schema cannot be used: {}", one_line(&error)))
}
