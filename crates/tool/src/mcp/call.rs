//! One call to a server: within its time, with its progress, and ended by being dropped. A call
//! that nobody waits for any more is told to the server as cancelled (S1-110 is for data services;
//! a tool server is asked to stop).

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ErrorCode, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use turnwire_event::metric;
use turnwire_event::port::BoxFuture;

use crate::mcp::asked::Asked;
use crate::mcp::error::{Unsent, unsent};
use crate::mcp::link::{Slot, Step};
use crate::mcp::server::Server;

/// How long a call waits for a server that is away: as long as a person hardly notices, and as
/// long as most need to come back.
const AWAY_MAX: Duration = Duration::from_secs(2);

/// Why a call is cancelled.
const NEEDLESS: &str = "the turn does not need it any more";

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lapse {
    /// The server is not there.
    Away,
    /// The server went while it worked.
    Broke,
    /// The server ended its answer before the result.
    Cut,
    /// It took too long.
    Timeout,
    /// The server says that the input does not fit, in all its words.
    Unfit(String),
    /// The server refused, in all its words.
    Refused(String),
    /// The server wants something that nobody here gives, or answered something else.
    Other,
}

impl Lapse {
    fn outcome(&self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Broke | Self::Cut => "broke",
            Self::Timeout => "timeout",
            Self::Unfit(_) | Self::Refused(_) | Self::Other => "refused",
        }
    }
}

/// Who is told how far a call is.
pub(crate) trait Hears: Send {
    /// The newest step; whoever hears it may keep it for later.
    fn step(&mut self, step: Step) -> BoxFuture<'_, ()>;

    /// When it wants to be asked again, if it kept one.
    fn due(&self) -> Option<Instant>;

    /// Tells what was kept.
    fn tell(&mut self) -> BoxFuture<'_, ()>;
}

/// Nobody hears.
pub(crate) struct Deaf;

impl Hears for Deaf {
    fn step(&mut self, _: Step) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn tell(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Calls `tool` of `server`; it has `within` for the answer, progress or not.
pub(crate) async fn call(
    server: &Server,
    tool: &str,
    arguments: Map<String, Value>,
    within: Duration,
    ear: &mut dyn Hears,
) -> Result<CallToolResult, Lapse> {
    let mut count = Count {
        server,
        outcome: "cancelled",
    };
    let given = ask(server, tool, arguments, within, ear).await;
    count.outcome = match &given {
        Ok(result) if result.is_error == Some(true) => "error",
        Ok(_) => "ok",
        Err(lapse) => lapse.outcome(),
    };
    given
}

/// Counts a call when it ends, however it ends.
struct Count<'a> {
    server: &'a Server,
    outcome: &'static str,
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        let server = self.server.name.to_string();
        metrics::counter!(metric::MCP_CALLS_TOTAL, "server" => server, "outcome" => self.outcome)
            .increment(1);
    }
}

async fn ask(
    server: &Server,
    tool: &str,
    arguments: Map<String, Value>,
    within: Duration,
    ear: &mut dyn Hears,
) -> Result<CallToolResult, Lapse> {
    let session = server.session(AWAY_MAX).await.ok_or(Lapse::Away)?;
    let open = session.open.begin(Instant::now() + within);
    let (slot, steps) = watch::channel(None);
    let slot: Slot = Arc::new(slot);
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let mut request = CallToolRequest::new(params);
    request.extensions.insert(Arc::clone(&slot));
    let request = ClientRequest::CallToolRequest(request);
    let options = PeerRequestOptions::with_timeout(within);
    let sent = session.peer.send_request_with_option(request, options);
    let given = match sent.await {
        Ok(handle) => answer(Asked::new(handle, NEEDLESS), steps, within, ear).await,
        Err(ServiceError::TransportClosed) => Err(Given::Gone),
        Err(error) => Err(Given::Error(error)),
    };
    drop((slot, open));
    match given {
        Ok(ServerResult::CallToolResult(result)) => Ok(result),
        Ok(_) => Err(Lapse::Other),
        Err(Given::Late) => {
            // A slow call, or a server that hangs: it is asked.
            session.meter.doubt();
            Err(Lapse::Timeout)
        }
        Err(Given::Gone) => {
            server.suspect(&session);
            Err(Lapse::Broke)
        }
        Err(Given::Error(ServiceError::McpError(refused))) => {
            let words = refused.message.into_owned();
            Err(match refused.code {
                ErrorCode::INVALID_PARAMS => Lapse::Unfit(words),
                _ => Lapse::Refused(words),
            })
        }
        // One answer ended too early; whether the others go on is asked.
        Err(Given::Error(ServiceError::TransportClosed)) => {
            session.meter.doubt();
            Err(Lapse::Cut)
        }
        Err(Given::Error(ServiceError::TransportSend(why))) => Err(match unsent(&why) {
            Unsent::Gone => {
                server.suspect(&session);
                Lapse::Broke
            }
            Unsent::Missed => {
                session.meter.doubt();
                Lapse::Broke
            }
            Unsent::Bad(words) => Lapse::Refused(words),
        }),
        Err(Given::Error(_)) => Err(Lapse::Other),
    }
}

/// Why there is no answer.
enum Given {
    Late,
    /// The connection is over.
    Gone,
    Error(ServiceError),
}

/// The answer to what was asked, while `ear` hears how far it is.
async fn answer(
    mut asked: Asked,
    mut steps: watch::Receiver<Option<Step>>,
    within: Duration,
    ear: &mut dyn Hears,
) -> Result<ServerResult, Given> {
    let late = Instant::now() + within;
    loop {
        let due = ear.due();
        tokio::select! {
            biased;
            answer = asked.answer() => {
                // The last step came before the answer and is never kept back.
                if steps.has_changed().is_ok_and(|is| is) {
                    let last = *steps.borrow_and_update();
                    if let Some(step) = last {
                        ear.step(step).await;
                    }
                }
                ear.tell().await;
                return answer.ok_or(Given::Gone)?.map_err(Given::Error);
            }
            Ok(()) = steps.changed() => {
                let newest = *steps.borrow_and_update();
                if let Some(step) = newest {
                    ear.step(step).await;
                }
            }
            () = at(due) => ear.tell().await,
            () = sleep_until(late) => return Err(Given::Late),
        }
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
