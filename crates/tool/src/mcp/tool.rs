//! A tool of an MCP server as a [`PackTool`].

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_pack::ToolDef;

use crate::input::object;
use crate::mcp::call::{CallError, CallRequest, call};
use crate::mcp::deadline::Deadline;
use crate::mcp::error::one_line;
use crate::mcp::list::ListedTool;
use crate::mcp::output::CallOutput;
use crate::mcp::progress::ProgressReporter;
use crate::mcp::server::ToolServer;
use crate::pack_tool::PackTool;
use crate::secrets::Secrets;
use crate::tool::{Tool, ToolFailure, ToolInvocation};

/// Added to the timeout of a call, so that the call ends first and says why.
const MARGIN: Duration = Duration::from_secs(3);

/// Calls one tool of a server.
pub(crate) struct McpTool {
    def: ToolDef,
    /// The name of the tool at the server.
    remote_name: String,
    server: Arc<ToolServer>,
    /// The keys of its server and those of this process, which no result may contain.
    secrets: Secrets,
    timeout: Duration,
}

impl McpTool {
    /// The tool `listed` as `def` defines it; the input schema, and a description that `def` leaves
    /// out, are the server's. No result has the `keys` of this process. Fails if the input schema cannot be used.
    pub(crate) fn build(
        def: &ToolDef,
        listed: &ListedTool,
        server: &Arc<ToolServer>,
        keys: &Secrets,
    ) -> Result<Arc<dyn Tool>, String> {
        let schema = listed.input.clone()?;
        let mut def = def.clone();
        if def.description.is_empty() {
            def.description.clone_from(&listed.description);
        }
        let timeout = Duration::from_millis(def.timeout_ms.unwrap_or(server.def.call_timeout_ms));
        let action = Arc::new(Self {
            def: def.clone(),
            remote_name: listed.name.clone(),
            server: Arc::clone(server),
            secrets: server.secrets.and(keys),
            timeout,
        });
        let run = move |call| Arc::clone(&action).run(call);
        let mut tool = PackTool::new(def, ToolType::Mcp, Some(timeout + MARGIN), run);
        tool.schema = Some(schema);
        tool.server = Some(Arc::clone(&server.name));
        Ok(Arc::new(tool))
    }

    async fn run(self: Arc<Self>, invocation: ToolInvocation) -> Result<Value, ToolFailure> {
        let arguments = object(&invocation.input)?.clone();
        let (server, secrets) = (&self.server, &self.secrets);
        let deadline = Deadline::after(self.timeout);
        let turn_id = invocation.context.turn_id;
        let invocation_trace = invocation.trace_headers();
        let owner = invocation.context.owner.clone();
        let mut progress = ProgressReporter::new(&server.name, &self.def, invocation);
        if server.begin_turn(turn_id) {
            progress.session_started().await;
        }
        let progress = Some(&mut progress);
        let request = CallRequest {
            tool: &self.remote_name,
            arguments,
            trace: invocation_trace,
            owner: &owner,
            deadline,
        };
        let result = call(server, request, progress).await;
        match result.map(|result| CallOutput::new(result, secrets)) {
            Ok(CallOutput::Result(value)) => Ok(value),
            Ok(CallOutput::Error(text)) => Err(ToolFailure::internal(text)),
            Ok(CallOutput::TooLarge) => Err(ToolFailure::internal(
                "The tool's result is too large to be read; ask for less.",
            )),
            Err(error) => Err(failure(error, secrets)),
        }
    }
}

fn failure(error: CallError, secrets: &Secrets) -> ToolFailure {
    // Keys are removed before the text is cut: the beginning of one would not be recognised.
    let clean = |text: String| one_line(&secrets.hide(text));
    let message = match error {
        CallError::Unavailable => "The tool's server is not available.",
        CallError::Busy => "Too many calls of the tool's server are running; try again later.",
        CallError::Disconnected => "The tool's server disconnected during the call.",
        CallError::Incomplete => "The tool's server broke off its response.",
        CallError::Unsupported => "The tool's server asked for something that is not supported.",
        CallError::InvalidInput(text) => return ToolFailure::invalid_input(clean(text)),
        CallError::Refused(text) => return ToolFailure::internal(clean(text)),
        CallError::Timeout => {
            let message = "The tool did not return a result in time.";
            return ToolFailure::new(ToolErrorClass::Timeout, message);
        }
    };
    ToolFailure::internal(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    // G6
    #[test]
    fn key_at_the_cut_of_a_refusal_is_removed_whole() {
        let secrets = Secrets::of_env(&[("API_KEY".to_owned(), "sk-at-the-cut".to_owned())]);
        let before = "x".repeat(294);
        let text = format!("{before}sk-at-the-cut and more");
        let expected = format!("{before}*** an");
        for error in [
            CallError::InvalidInput(text.clone()),
            CallError::Refused(text),
        ] {
            assert_eq!(failure(error, &secrets).message, expected);
        }
    }
}
