//! `turnwire chat`: a conversation, line by line, over the session wire.
//!
//! ```text
//!   open ─▶ snapshot ─▶ ┌ a line ─▶ submit ─▶ events … ─▶ the turn's terminal ┐ ─▶ end of input
//!                       └────────────────────────◀────────────────────────────┘
//!            lost and found again by the watch, at any time      Ctrl-C: cancel, then leave
//!            a turn that pauses: its questions, and the turn that goes on
//! ```

mod input;
mod screen;
mod participants;
mod turn_ending;
mod event_printer;
mod pending_cancel;
mod missed_turn;
mod session_view;
mod conversation;
mod approval_prompt;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tokio::signal::unix::{SignalKind, signal};
use turnwire_client::{Client, Error};
use turnwire_event::SessionId;
use turnwire_wire::rest::session::SessionCreate;

use crate::args::{ChatArgs, ClientArgs, SessionChoice};
use crate::connect;

use conversation::{ChatConversation, QuestionSource};
use event_printer::{EventPrinter, OutputForm};
use screen::{ChatScreen, OutputStreams};
use session_view::{LeaveReason, SessionView};

/// The exit status of those who leave by Ctrl-C.
const INTERRUPTED: u8 = 130;
/// How long to wait before the server is asked the same again: at first, and at most.
const AGAIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(5);

/// Talks until the questions end, or whoever asks leaves.
pub(crate) async fn run(args: &ChatArgs) -> Result<ExitCode> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let client = connect::client(&args.speaker)?;
    let opened = tokio::select! {
        opened = session(&client, args) => opened.map_err(|error| explain(error, &args.speaker))?,
        _ = interrupts.recv() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    let opened = opened.context("there is no session yet; `turnwire chat` makes one")?;
    let streams = OutputStreams::here();
    let form = match (args.json, args.thinking) {
        (true, _) => OutputForm::Json,
        (false, true) => OutputForm::Thinking,
        (false, false) => OutputForm::Folded,
    };
    let questions = match args.message.is_empty() {
        true => QuestionSource::Lines(input::lines()),
        false => QuestionSource::Once(args.message.join(" ")),
    };
    let teller = EventPrinter::new(ChatScreen::here(streams), form, args.speaker.flags());
    let mut talk = ChatConversation::new(SessionView::new(client, opened, teller, interrupts));
    let leave_reason = talk.run(questions, streams.stdin).await;
    if args.session.is_none() {
        let _ = talk.say(&format!(
            "to come back: turnwire chat --session {opened}{}",
            args.speaker.flags()
        ));
    }
    match leave_reason {
        Ok(outcome) => Ok(ExitCode::from(outcome)),
        Err(LeaveReason::Interrupted) => Ok(ExitCode::from(INTERRUPTED)),
        Err(LeaveReason::HungUp) => Ok(ExitCode::SUCCESS),
        Err(LeaveReason::Unwritable(error)) => {
            // Unlike what cannot be asked, this was asked: 1, as for an answer that never came.
            let _ = talk.say(&format!("turnwire: the answer cannot be written: {error}"));
            Ok(ExitCode::FAILURE)
        }
        Err(LeaveReason::Deleted) => Err(anyhow!("the session was deleted")),
        Err(LeaveReason::Failed(error)) => Err(explain(error, &args.speaker)),
        Err(LeaveReason::Unreadable(what)) => Err(anyhow!(what)),
    }
}

/// The session to talk in: the one that is named, the newest if there is one, or a new one.
async fn session(client: &Client, args: &ChatArgs) -> Result<Option<SessionId>, Error> {
    Ok(match args.session {
        None => Some(
            client
                .create_session(&SessionCreate::default())
                .await?
                .session_id,
        ),
        Some(SessionChoice::Id(id)) => Some(client.attach(id).await?.session.session_id),
        Some(SessionChoice::Last) => {
            let newest = client.sessions(None, Some(1)).await?.sessions.pop();
            newest.map(|session| session.session_id)
        }
    })
}

/// An error with what can be done about it.
fn explain(error: Error, speaker: &ClientArgs) -> anyhow::Error {
    let message = match &error {
        Error::Connection(_) | Error::Timeout(_) => format!(
            "nothing answers at {}; start a server with `turnwire serve`, or name one with --server",
            speaker.server
        ),
        _ => format!("asking {}", speaker.server),
    };
    anyhow::Error::new(error).context(message)
}
