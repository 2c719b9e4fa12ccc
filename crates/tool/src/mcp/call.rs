//! One call to a server. Its one deadline covers the wait for a server that is away and the
//! response; dropping the future cancels the call at the server.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, RequestMetaObject,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use turnwire_event::{Owner, metric};

use crate::mcp::connection::{
    ConnectionFault, ConnectionHandle, ConnectionHealth, PendingRequest, ProgressSender,
    ProgressStep, ResultSender, ResultSlot, SendFailure,
};
use crate::mcp::deadline::Deadline;
use crate::mcp::output::CallResult;
use crate::mcp::progress::ProgressReporter;
use crate::mcp::server::ToolServer;

/// How long a call waits for a server that is away: most servers restart in this time.
const RECONNECT_WAIT: Duration = Duration::from_secs(2);

const CANCEL_REASON: &str = "the turn does not need the result any more";

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The server is away.
    Unavailable,
    /// Too many calls wait for the server.
    Busy,
    /// The connection ended during the call.
    Disconnected,
    /// The server ended its response before the result.
    Incomplete,
    Timeout,
    /// The server rejected the input, with this text.
    InvalidInput(String),
    /// The server refused the call, with this text.
    Refused(String),
    /// The response is not a result, or asks for something that this client does not offer.
    Unsupported,
}

impl CallError {
    /// The label of the metric.
    fn outcome(&self) -> &'static str {
        match self {
            Self::Unavailable => "away",
            Self::Disconnected | Self::Incomplete => "broke",
            Self::Timeout => "timeout",
            Self::InvalidInput(_) | Self::Refused(_) | Self::Unsupported => "refused",
            Self::Busy => "busy",
        }
    }
}

/// A call for [`call`].
pub(crate) struct CallRequest<'a> {
    /// The name of the tool at the server.
    pub(crate) tool: &'a str,
    pub(crate) arguments: Map<String, Value>,
    /// `traceparent` and `tracestate`, which MCP has in the `_meta` of a request.
    pub(crate) trace: Vec<(&'static str, String)>,
    /// The owner of the turn, whose share of the server's calls is used.
    pub(crate) owner: &'a Owner,
    pub(crate) deadline: Deadline,
}

/// Calls a tool of `server`. Progress of the server does not extend the deadline.
pub(crate) async fn call(
    server: &ToolServer,
    request: CallRequest<'_>,
    progress: Option<&mut ProgressReporter>,
) -> Result<CallResult, CallError> {
    let CallRequest {
        tool,
        arguments,
        trace,
        owner,
        deadline,
    } = request;
    let mut count = OutcomeCount {
        server,
        outcome: "cancelled",
    };
    let result = async {
        let slot = timeout_at(deadline.at, server.slots.acquire(owner)).await;
        let slot = slot.map_err(|_| CallError::Timeout)?;
        let _slot = slot.map_err(|_| CallError::Busy)?;
        let reconnected = deadline.at_most(RECONNECT_WAIT).at;
        let connection = server.connection(reconnected).await;
        let connection = connection.ok_or(CallError::Unavailable)?;
        let open_call = connection.health.begin_call(deadline.at);
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut request = CallToolRequest::new(params);
        set_trace(&mut request, trace);
        let response = exchange(&connection, request, progress);
        let response = timeout_at(deadline.at, response).await;
        drop(open_call);
        match response {
            Ok(response) => response,
            Err(_) => {
                // The call may be slow, or the server may hang.
                connection.health.request_probe();
                Err(CallError::Timeout)
            }
        }
    };
    let result = result.await;
    count.outcome = match &result {
        Ok(result) if result.is_error => "error",
        Ok(_) => "ok",
        Err(error) => error.outcome(),
    };
    result
}

/// Counts a call when it is dropped, so that a cancelled one counts too.
struct OutcomeCount<'a> {
    server: &'a ToolServer,
    outcome: &'static str,
}

impl Drop for OutcomeCount<'_> {
    fn drop(&mut self) {
        let server = self.server.name.to_string();
        metrics::counter!(metric::MCP_CALLS_TOTAL, "server" => server, "outcome" => self.outcome)
            .increment(1);
    }
}

/// Puts the trace into the `_meta` of a request.
fn set_trace(request: &mut CallToolRequest, trace: Vec<(&'static str, String)>) {
    if trace.is_empty() {
        return;
    }
    let mut meta = RequestMetaObject::new();
    for (name, value) in trace {
        meta.insert(name.to_owned(), value.into());
    }
    request.extensions.insert(meta);
}

/// Sends the request and waits for its response, with reports of its progress.
async fn exchange(
    connection: &ConnectionHandle,
    mut request: CallToolRequest,
    mut progress: Option<&mut ProgressReporter>,
) -> Result<CallResult, CallError> {
    let health = &connection.health;
    let (sender, mut steps) = watch::channel(None);
    // The transport drops what it routes to this sender once the call is over.
    let sender: ProgressSender = Arc::new(sender);
    request.extensions.insert(Arc::clone(&sender));
    let slot = ResultSlot::new(CallResult::read);
    let reader: ResultSender = slot.clone();
    request.extensions.insert(reader);
    let request = ClientRequest::CallToolRequest(request);
    let options = PeerRequestOptions::no_options();
    let sent = connection.peer.send_request_with_option(request, options);
    let handle = sent.await.map_err(|error| match error {
        ServiceError::TransportClosed => closed(health),
        error => call_error(error, health),
    })?;
    let mut pending = PendingRequest::new(handle, CANCEL_REASON);
    loop {
        let due = progress.as_deref().and_then(ProgressReporter::due);
        tokio::select! {
            biased;
            response = pending.response() => {
                // The last step arrived before the response and is always reported.
                if let Some(progress) = progress {
                    if steps.has_changed().unwrap_or(false) {
                        report(progress, &mut steps).await;
                    }
                    progress.flush().await;
                }
                let response = response.ok_or_else(|| closed(health))?;
                response.map_err(|error| call_error(error, health))?;
                return slot.take().flatten().ok_or(CallError::Unsupported);
            }
            Ok(()) = steps.changed() => match &mut progress {
                Some(progress) => report(progress, &mut steps).await,
                None => steps.mark_unchanged(),
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                if let Some(progress) = &mut progress {
                    progress.flush().await;
                }
            }
        }
    }
}

/// Reports the newest step.
async fn report(
    progress: &mut ProgressReporter,
    steps: &mut watch::Receiver<Option<ProgressStep>>,
) {
    let step = *steps.borrow_and_update();
    if let Some(step) = step {
        progress.step(step).await;
    }
}

/// The connection is closed: its supervisor opens another one.
fn closed(health: &ConnectionHealth) -> CallError {
    health.fail(ConnectionFault::Unreachable);
    CallError::Disconnected
}

/// What the `error` of a request means for the call, and for the connection.
fn call_error(error: ServiceError, health: &ConnectionHealth) -> CallError {
    match error {
        ServiceError::McpError(error) => {
            let text = error.message.into_owned();
            match error.code {
                ErrorCode::INVALID_PARAMS => CallError::InvalidInput(text),
                _ => CallError::Refused(text),
            }
        }
        // One response ended too early; the probe finds out about the others.
        ServiceError::TransportClosed => {
            health.request_probe();
            CallError::Incomplete
        }
        ServiceError::TransportSend(error) => match SendFailure::from(&error) {
            SendFailure::Closed => closed(health),
            SendFailure::Missed => {
                health.request_probe();
                CallError::Disconnected
            }
            SendFailure::BadResponse(text) => CallError::Refused(text),
        },
        _ => CallError::Unsupported,
    }
}
