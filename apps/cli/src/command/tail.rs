//! `turnwire tail`: prints the events of a session, as JSON or as lines for a person.
//!
//! Events go to standard output and the state of the connection to standard error, so that a pipe
//! carries only events. The command ends quietly when its reader closes the pipe.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::json;
use turnwire_client::{WatchItem, WatchStart};
use turnwire_event::Event;

use crate::args::{StartPosition, TailArgs};
use crate::connect;
use crate::terminal::color::ColorMode;
use crate::terminal::event_line::EventLinePrinter;
use crate::terminal::output::unless_closed;
use crate::terminal::sanitize;

/// The interval of checks that standard output still has a reader.
const READER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Runs until the session is deleted or the reader closes the pipe; for a data folder, until the
/// end of the log.
pub(crate) async fn run(args: &TailArgs) -> Result<()> {
    let mut out = EventOutput {
        json: args.source.json,
        printer: EventLinePrinter::new(ColorMode::of_stdout()),
    };
    let result = match &args.source.data {
        None => follow_server(args, &mut out).await,
        Some(_) => print_folder(args, &mut out).await,
    };
    unless_closed(result).with_context(|| connect::context(&args.source))
}

/// Prints the events that the server sends, and reconnects when the connection is lost.
async fn follow_server(args: &TailArgs, out: &mut EventOutput) -> Result<()> {
    let start = match args.from {
        StartPosition::After(at) => WatchStart::After(at),
        StartPosition::Now => WatchStart::Live,
    };
    let filter = match args.workers {
        true => json!({"include_worker_sessions": true}),
        false => json!("preset:full"),
    };
    // The session of the last printed event. With `--workers` events come from several sessions,
    // and a line announces each change.
    let mut session = args.source.session;
    let mut watch = connect::client(&args.source.client)?.watch(session, filter, start);
    let mut is_disconnected = false;
    let mut reader_check = tokio::time::interval(READER_CHECK_INTERVAL);
    loop {
        let item = tokio::select! {
            item = watch.next() => item?,
            _ = reader_check.tick() => match out.is_closed() {
                true => return Ok(()),
                false => continue,
            }
        };
        match item {
            None => break,
            Some(WatchItem::Connected { .. }) => {
                if std::mem::take(&mut is_disconnected) {
                    eprintln!("connected again");
                }
            }
            Some(WatchItem::Lost { reason, retry_in }) => {
                is_disconnected = true;
                // Ends a line of text before the message on standard error.
                out.write_note("")?;
                let ms = retry_in.as_millis();
                eprintln!("lost the server ({reason}); trying again in {ms} ms");
            }
            Some(WatchItem::Event(event)) => {
                if session != event.session_id && !out.json {
                    session = event.session_id;
                    out.write_note(&format!("-- {session}\n"))?;
                }
                out.write_event(&event.raw)?;
            }
            Some(WatchItem::Snapshot(snapshot)) if out.json => out.write_json(&snapshot.raw)?,
            Some(WatchItem::Snapshot(snapshot)) => {
                out.write_note(&format!("snapshot at {}\n", snapshot.position))?;
                for message in &snapshot.messages {
                    let text = out.printer.message(message);
                    out.write(text.as_bytes())?;
                }
            }
        }
    }
    eprintln!("the session was deleted");
    Ok(())
}

/// Prints the stored log of a data folder, without a server.
async fn print_folder(args: &TailArgs, out: &mut EventOutput) -> Result<()> {
    let source = connect::source(&args.source)?;
    let mut since = match args.from {
        StartPosition::After(at) => Some(at),
        StartPosition::Now => return Ok(()),
    };
    loop {
        let page = source.events(args.source.session, since).await?;
        for (bytes, _) in &page.events {
            out.write_event(bytes)?;
        }
        page.check_damage()?;
        if page.next.is_none() {
            return Ok(());
        }
        since = page.next;
    }
}

/// Writes events to standard output, as JSON or as lines for a person.
struct EventOutput {
    json: bool,
    printer: EventLinePrinter,
}

impl EventOutput {
    /// True if the reader has closed standard output. Polls, because an idle tail writes nothing
    /// that could fail.
    fn is_closed(&self) -> bool {
        let stdout = io::stdout();
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        let polled = rustix::event::poll(&mut fds, Some(&Timespec::default()));
        polled.is_ok() && fds[0].revents().contains(PollFlags::ERR)
    }

    /// Writes an event; an event that cannot be parsed is always written as JSON.
    fn write_event(&mut self, bytes: &[u8]) -> Result<()> {
        match Event::read(bytes) {
            Ok(event) if !self.json => {
                let text = self.printer.event(&event);
                self.write(text.as_bytes())
            }
            _ => self.write_json(bytes),
        }
    }

    /// Writes a line of JSON; invisible characters are escaped if standard output is a terminal.
    fn write_json(&mut self, bytes: &[u8]) -> Result<()> {
        let line = sanitize::json_line(bytes, io::stdout().is_terminal());
        let end = self.printer.end_text();
        self.write(&[end.as_bytes(), &line].concat())
    }

    /// Ends the current line of text, then writes `text` unless the output is JSON.
    fn write_note(&mut self, text: &str) -> Result<()> {
        let text = if self.json { "" } else { text };
        let text = format!("{}{text}", self.printer.end_text());
        self.write(text.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }
}
