//! What tools a server has: all its pages, within bounds. It is asked when a pack is loaded and
//! never in a turn (S2-001).

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::PaginatedRequestParams;
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::checked::InputSchema;
use crate::mcp::error::said;
use crate::shelf::size;

/// Tools of one server; a model is confused by far fewer.
const TOOLS_MAX: usize = 256;
/// Pages they may come in.
const PAGES_MAX: usize = 8;
/// Of the schema of one tool: it is sent to the model with every call.
const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// Of a name; providers take fewer.
const NAME_CHARS_MAX: usize = 128;
/// Of a description, for the same reason as the schema.
const DESCRIPTION_CHARS_MAX: usize = 8_192;

/// One tool as its server describes it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) description: String,
    /// What its input must be, or why that cannot be said.
    pub(crate) input: Result<Arc<InputSchema>, String>,
}

/// Why there is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoList {
    #[error(
        "it did not list its tools within {} ms; give it a longer `start_timeout_ms`",
        .0.as_millis()
    )]
    Silent(Duration),
    #[error("it does not list its tools: {0}")]
    Refused(String),
    #[error(
        "it went while it listed its tools; run its `command` by hand, or look at what is at its `url`, to see why"
    )]
    Ended,
    #[error("what it answers is not a list of tools")]
    Nonsense,
    #[error("it has more than {TOOLS_MAX} tools; let it offer fewer")]
    Many,
    #[error("its list of tools has no end: more than {PAGES_MAX} pages")]
    Endless,
}

/// Every tool of the server at the other end, until `until`, which is `within` from now on or less.
pub(crate) async fn list(
    peer: &Peer<RoleClient>,
    (within, until): (Duration, Instant),
) -> Result<Vec<Found>, NoList> {
    match timeout_at(until, pages(peer)).await {
        Ok(found) => found,
        Err(_) => Err(NoList::Silent(within)),
    }
}

async fn pages(peer: &Peer<RoleClient>) -> Result<Vec<Found>, NoList> {
    let mut found = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let asked = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(asked)).await.map_err(refused)?;
        if found.len() + page.tools.len() > TOOLS_MAX {
            return Err(NoList::Many);
        }
        // Every schema is compiled: work for a thread that nobody waits on.
        let tools = page.tools;
        let compiled = spawn_blocking(move || tools.into_iter().map(of).collect::<Vec<_>>());
        found.extend(compiled.await.map_err(|_| NoList::Nonsense)?);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(found);
        }
    }
    Err(NoList::Endless)
}

fn refused(error: ServiceError) -> NoList {
    match error {
        ServiceError::McpError(refused) => NoList::Refused(said(&refused.message)),
        ServiceError::UnexpectedResponse => NoList::Nonsense,
        _ => NoList::Ended,
    }
}

fn of(tool: rmcp::model::Tool) -> Found {
    let description = tool.description.unwrap_or_default();
    let schema = Value::Object(tool.input_schema.as_ref().clone());
    Found {
        name: tool.name.chars().take(NAME_CHARS_MAX).collect(),
        description: description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
        input: judged(schema),
    }
}

fn judged(schema: Value) -> Result<Arc<InputSchema>, String> {
    if size(&schema) > SCHEMA_BYTES_MAX {
        return Err(format!(
            "its input schema has more than {SCHEMA_BYTES_MAX} bytes"
        ));
    }
    let judged = InputSchema::checked_again(&schema).map(Arc::new);
    judged.map_err(|why| format!("its input schema cannot be used: {}", said(&why.0)))
}
