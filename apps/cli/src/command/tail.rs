//! `turnwire tail`: the events of a session, as JSON or as lines for a person.
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

/// The interval in which an idle tail checks that standard output still has a reader.
const READER_CHECK: Duration = Duration::from_secs(1);

/// Runs until the session is deleted, the reader closes the pipe or, for a folder, the log ends.
pub(crate) async fn run(args: &TailArgs) -> Result<()> {
    let mut out = EventOutput {
        json: args.source.json,
        printer: EventLinePrinter::new(ColorMode::of_stdout()),
    };
    let result = match &args.source.data {
        None => follow(args, &mut out).await,
        Some(_) => read(args, &mut out).await,
    };
    unless_closed(result).with_context(|| connect::context(&args.source))
}

/// Prints the events of a server as they happen.
async fn follow(args: &TailArgs, out: &mut EventOutput) -> Result<()> {
    let start = match args.from {
        StartPosition::After(at) => WatchStart::After(at),
        StartPosition::Now => WatchStart::Live,
    };
    let filter = match args.workers {
        true => json!({"include_worker_sessions": true}),
        false => json!("preset:full"),
    };
    // The session of the last event: with workers, a line announces that it changes.
    let mut session = args.source.session;
    let mut watch = connect::client(&args.source.client)?.watch(session, filter, start);
    let mut was_lost = false;
    let mut reader_check = tokio::time::interval(READER_CHECK);
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
                if std::mem::take(&mut was_lost) {
                    eprintln!("connected again");
                }
            }
            Some(WatchItem::Lost { reason, retry_in }) => {
                was_lost = true;
                out.note("")?;
                let ms = retry_in.as_millis();
                eprintln!("lost the server ({reason}); again in {ms} ms");
            }
            Some(WatchItem::Event(event)) => {
                if session != event.session_id && !out.json {
                    session = event.session_id;
                    out.note(&format!("-- {session}\n"))?;
                }
                out.event(&event.raw)?;
            }
            Some(WatchItem::Snapshot(snapshot)) if out.json => out.raw(&snapshot.raw)?,
            Some(WatchItem::Snapshot(snapshot)) => {
                out.note(&format!("snapshot at {}\n", snapshot.position))?;
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

/// Prints the log of a data folder up to its end.
async fn read(args: &TailArgs, out: &mut EventOutput) -> Result<()> {
    let source = connect::source(&args.source)?;
    let mut since = match args.from {
        StartPosition::After(at) => Some(at),
        StartPosition::Now => return Ok(()),
    };
    loop {
        let page = source.events(args.source.session, since).await?;
        for (bytes, _) in &page.events {
            out.event(bytes)?;
        }
        page.check_damage()?;
        if page.next.is_none() {
            return Ok(());
        }
        since = page.next;
    }
}

struct EventOutput {
    json: bool,
    printer: EventLinePrinter,
}

impl EventOutput {
    /// True if the reader has closed standard output; otherwise only a write would show it.
    fn is_closed(&self) -> bool {
        let stdout = io::stdout();
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        let polled = rustix::event::poll(&mut fds, Some(&Timespec::default()));
        polled.is_ok() && fds[0].revents().contains(PollFlags::ERR)
    }

    /// Writes an event, as JSON if that is selected or if the event cannot be parsed.
    fn event(&mut self, bytes: &[u8]) -> Result<()> {
        match Event::read(bytes) {
            Ok(event) if !self.json => {
                let text = self.printer.event(&event);
                self.write(text.as_bytes())
            }
            _ => self.raw(bytes),
        }
    }

    /// Writes a line of JSON; a terminal gets hidden characters escaped.
    fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        let line = sanitize::json_line(bytes, io::stdout().is_terminal());
        let end = self.printer.end_text();
        self.write(&[end.as_bytes(), &line].concat())
    }

    /// Writes a note between the events, for people only.
    fn note(&mut self, text: &str) -> Result<()> {
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
