//! The connections of a fake provider: reads requests, selects script lines, sends the answers.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::answer::ProviderAnswer;
use super::check;
use super::dialect::Dialect;
use super::error::{ErrorResponse, ProviderError};
use super::http::{CallerLeft, HttpRequest, HttpSocket};
use super::journal::{AnswerProgress, CallJournal};
use super::plan::{AnswerEnd, AnswerPlan, SocketStep};
use super::render_request::RenderRequest;

/// One line of the script.
#[derive(Debug)]
pub(crate) struct ScriptLine {
    /// Text that the request body must contain; empty matches all.
    pub(crate) needle: String,
    /// True if the line answers any number of calls.
    pub(crate) repeats: bool,
    pub(crate) answer: ProviderAnswer,
}

/// State shared by [`FakeProvider`](super::FakeProvider) and its connections.
#[derive(Debug)]
pub(crate) struct ProviderShared {
    pub(crate) journal: CallJournal,
    pub(crate) script: Mutex<Vec<ScriptLine>>,
    pub(crate) key: Mutex<Option<String>>,
}

/// Accepts connections; dropping the future closes them all.
pub(crate) async fn accept(listener: TcpListener, shared: Arc<ProviderShared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { return };
                connections.spawn(connection(socket, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Records the end of a connection when dropped.
struct OpenGuard {
    shared: Arc<ProviderShared>,
    number: usize,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.shared.journal.closed(self.number);
    }
}

async fn connection(socket: TcpStream, shared: Arc<ProviderShared>) {
    let number = shared.journal.opened();
    let guard = OpenGuard { shared, number };
    let shared = &guard.shared;
    // Send each frame at once.
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let mut wire = HttpSocket::new(socket);
    while let Ok(request) = wire.read().await {
        let call = shared.journal.arrived(number, &request);
        let plan = plan(shared, call, &request);
        let end = perform(&mut wire, shared, call, &plan).await;
        let ended = |progress| shared.journal.update(call, |call| call.progress = progress);
        match end {
            Ok(AnswerEnd::Proper) => ended(AnswerProgress::Sent),
            Ok(AnswerEnd::Cut) => {
                ended(AnswerProgress::Cut);
                return;
            }
            Ok(AnswerEnd::Reset) => {
                ended(AnswerProgress::Cut);
                wire.reset();
                return;
            }
            Err(CallerLeft) => return,
        }
    }
}

/// The plan for a request: its line of the script, unless validation rejects it.
fn plan(shared: &ProviderShared, call: usize, request: &HttpRequest) -> AnswerPlan {
    let refuse = |dialect, trouble, message: String| {
        let refusal = ErrorResponse::new(trouble, dialect, Some(&message), None);
        shared
            .journal
            .update(call, |call| call.refused = Some(message));
        AnswerPlan::refusal(refusal, &ProviderAnswer::refuse(trouble), Vec::new())
    };
    let Some(dialect) = Dialect::of(&request.path) else {
        let message = format!("no such path: {}", request.path);
        return refuse(Dialect::Chat, ProviderError::NotFound, message);
    };
    let body = serde_json::from_slice(&request.body).unwrap_or_default();
    let key = shared.key.lock().clone();
    if let Some(rejection) = check::rejection(dialect, request, &body, key.as_deref()) {
        return refuse(dialect, rejection.trouble, rejection.message);
    }
    let text = String::from_utf8_lossy(&request.body);
    let mut script = shared.script.lock();
    let Some(at) = script.iter().position(|line| text.contains(&line.needle)) else {
        let message = "the script has no answer for this request".to_owned();
        return refuse(dialect, ProviderError::Server, message);
    };
    let answer = if script[at].repeats {
        script[at].answer.clone()
    } else {
        script.remove(at).answer
    };
    let request = RenderRequest::new(dialect, &request.path, body, call);
    AnswerPlan::new(&answer, dialect, &request)
}

async fn perform(
    wire: &mut HttpSocket,
    shared: &ProviderShared,
    call: usize,
    plan: &AnswerPlan,
) -> Result<AnswerEnd, CallerLeft> {
    for step in &plan.before {
        act(wire, shared, call, step, BodyFraming::Plain).await?;
    }
    let sized = plan
        .headers
        .iter()
        .any(|(name, _)| name == "content-length");
    let mut head = format!("HTTP/1.1 {} {}\r\n", plan.status, reason(plan.status));
    for (name, value) in &plan.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !sized {
        head += "transfer-encoding: chunked\r\n";
    }
    shared
        .journal
        .update(call, |call| call.status = Some(plan.status));
    wire.send((head + "\r\n").as_bytes(), |_| {}).await?;
    let framing = if sized {
        BodyFraming::Plain
    } else {
        BodyFraming::Chunked
    };
    for step in &plan.steps {
        act(wire, shared, call, step, framing).await?;
    }
    if !sized && plan.end == AnswerEnd::Proper {
        wire.send(b"0\r\n\r\n", |_| {}).await?;
    }
    Ok(plan.end)
}

/// How a body is framed by HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyFraming {
    Plain,
    Chunked,
}

async fn act(
    wire: &mut HttpSocket,
    shared: &ProviderShared,
    call: usize,
    step: &SocketStep,
    framing: BodyFraming,
) -> Result<(), CallerLeft> {
    let journal = &shared.journal;
    match step {
        SocketStep::Pause(pause) => wire.pause(*pause).await,
        SocketStep::Hold => {
            journal.update(call, |call| call.progress = AnswerProgress::Held);
            wire.until(journal.released(call)).await?;
            journal.update(call, |call| call.progress = AnswerProgress::Sending);
            Ok(())
        }
        SocketStep::Write(bytes) => write(wire, shared, call, bytes, framing).await,
        SocketStep::Repeat(bytes) => loop {
            write(wire, shared, call, bytes, framing).await?;
        },
    }
}

async fn write(
    wire: &mut HttpSocket,
    shared: &ProviderShared,
    call: usize,
    bytes: &[u8],
    framing: BodyFraming,
) -> Result<(), CallerLeft> {
    let journal = &shared.journal;
    let note = |full: bool| {
        let progress = if full {
            AnswerProgress::Blocked
        } else {
            AnswerProgress::Sending
        };
        journal.update(call, |call| call.progress = progress);
    };
    match framing {
        BodyFraming::Plain => wire.send(bytes, note).await?,
        BodyFraming::Chunked => {
            let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
            chunk.extend_from_slice(bytes);
            chunk.extend_from_slice(b"\r\n");
            wire.send(&chunk, note).await?;
        }
    }
    journal.update(call, |call| call.written += bytes.len() as u64);
    Ok(())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
