//! `turnwire chat`: a conversation, line by line, over the session wire.
//!
//! ```text
//!   open ─▶ snapshot ─▶ ┌ a line ─▶ submit ─▶ events … ─▶ the turn's terminal ┐ ─▶ end of input
//!                       └────────────────────────◀────────────────────────────┘
//!            the watch reconnects at any time
//!            Ctrl-C: cancel the running turn; a second one, or one between turns: leave
//!            paused turn: prompt for its approvals, then follow the resumed turn
//! ```

mod command;
mod input;
mod prompt_output;
mod line_input;
mod retry_delay;
mod screen;
mod participants;
mod turn_ending;
mod event_printer;
mod pending_cancel;
mod missed_turn;
mod session_view;
mod conversation;
mod approval_prompt;

use std::io;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use tokio::signal::unix::{SignalKind, signal};
use turnwire_client::{Client, Error};
use turnwire_event::SessionId;
use turnwire_wire::rest::session::SessionCreate;

use crate::args::{ChatArgs, ClientArgs, SessionChoice};
use crate::connect;
use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::wording::error_text;

use conversation::{ChatConversation, MessageSource};
use event_printer::{EventPrinter, OutputForm};
use line_input::{LineInput, TerminalLines};
use prompt_output::{PromptOutput, PromptWriter};
use screen::{ChatScreen, OutputStreams};
use session_view::{LeaveReason, SessionView};

/// The exit status after Ctrl-C: 128 and the number of SIGINT, as shells report it.
const EXIT_INTERRUPTED: u8 = 130;

/// Chats until the input ends or the user leaves; returns the exit status of the command.
pub(crate) async fn run(args: &ChatArgs) -> Result<ExitCode> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let client = connect::client(&args.client)?;
    let session = tokio::select! {
        session = choose_session(&client, args) => {
            session.map_err(|error| with_advice(error, &args.client))?
        }
        _ = interrupts.recv() => return Ok(ExitCode::from(EXIT_INTERRUPTED)),
    };
    let session = session.context("there is no session yet; `turnwire chat` creates one")?;
    let form = match (args.json, args.thinking) {
        (true, _) => OutputForm::Json,
        (false, true) => OutputForm::Thinking,
        (false, false) => OutputForm::Folded,
    };
    let streams = OutputStreams::of_process();
    let output = PromptOutput::default();
    let messages = match args.message.is_empty() {
        true => MessageSource::Lines(line_input(args, streams, &output)),
        false => MessageSource::Once(args.message.join(" ")),
    };
    let color = ColorMode::of_stderr();
    let out = PromptWriter::new(io::stdout(), &output);
    let err = PromptWriter::new(io::stderr(), &output);
    let mut screen = ChatScreen::new(out, err, streams, color);
    if args.message.is_empty() && screen.has_person() && form != OutputForm::Json {
        let _ = screen.note(TextTone::Quiet, &banner(&client, session).await);
    }
    let flags = args.client.flags();
    let printer = EventPrinter::new(screen, form, flags.clone());
    let view = SessionView::new(client, session, printer, interrupts);
    let mut conversation = ChatConversation::new(view);
    let result = conversation.run(messages, streams.stdin).await;
    let mut view = conversation.view;
    if args.session.is_none() {
        let command = format!("turnwire chat --session {session}{flags}");
        let screen = &mut view.printer.screen;
        let _ = screen.note_with_command(TextTone::Quiet, "to come back:", &command);
    }
    match result {
        Ok(status) => Ok(ExitCode::from(status)),
        Err(LeaveReason::Interrupted) => Ok(ExitCode::from(EXIT_INTERRUPTED)),
        Err(LeaveReason::HungUp | LeaveReason::Quit) => Ok(ExitCode::SUCCESS),
        Err(LeaveReason::Unwritable(error)) => {
            // The turn was submitted, so the status is 1, as after a failed turn.
            let _ = view.say(&format!("turnwire: the answer cannot be written: {error}"));
            Ok(ExitCode::FAILURE)
        }
        Err(LeaveReason::Deleted) => Err(anyhow!("the session was deleted")),
        Err(LeaveReason::Failed(error)) => Err(with_advice(error, &args.client)),
        Err(LeaveReason::Unreadable(reason)) => Err(anyhow!(reason)),
    }
}

/// The lines of the chat: with an editor, if a person types at a terminal that can show one.
fn line_input(args: &ChatArgs, streams: OutputStreams, output: &PromptOutput) -> LineInput {
    if streams.stdin && streams.stdout && streams.rewrites && !args.json {
        let history = match args.no_history {
            true => None,
            false => line_input::history_file(),
        };
        // A terminal without an editor is still one to type at.
        if let Ok(lines) = TerminalLines::start(history, output) {
            return LineInput::Terminal(lines);
        }
    }
    LineInput::pipe()
}

/// What a person talks to, and how to find out more.
async fn banner(client: &Client, session: SessionId) -> String {
    let attached = client.attach(session).await;
    let subject = attached.ok().map(|attached| {
        let model = &attached.session.active_model;
        let pack = attached
            .pack
            .unwrap_or_else(|| format!("no pack, model {model}"));
        format!("{pack}; ")
    });
    let subject = subject.unwrap_or_default();
    format!("{subject}/help lists the commands, Ctrl-D leaves")
}

/// The session that `--session` selects, or a new one without `--session`. `None` if `--session last`
/// finds no session.
async fn choose_session(client: &Client, args: &ChatArgs) -> Result<Option<SessionId>, Error> {
    Ok(match args.session {
        None => {
            let created = client.create_session(&SessionCreate::default()).await?;
            Some(created.session_id)
        }
        Some(SessionChoice::Id(id)) => Some(client.attach(id).await?.session.session_id),
        Some(SessionChoice::Last) => {
            let newest = client.sessions(None, Some(1)).await?.sessions.pop();
            newest.map(|session| session.session_id)
        }
    })
}

/// Adds the address of the server to an error, and what to do if the server does not respond.
fn with_advice(error: Error, args: &ClientArgs) -> anyhow::Error {
    let server = &args.server;
    let message = match &error {
        Error::Connection(_) | Error::Timeout(_) => format!(
            "nothing answers at {server}; start a server with `turnwire serve`, or name one with \
             --server"
        ),
        _ => format!("asking {server}"),
    };
    anyhow!(error_text(&error)).context(message)
}
