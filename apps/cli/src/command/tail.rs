//! `turnwire tail`: the events of a session, as they are or as lines for a person.
//!
//! Events go to the standard output; what happens to the connection goes to the standard error,
//! so that a pipe carries events alone. A reader that goes away ends the command quietly.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::json;
use turnwire_client::{WatchItem, WatchStart};
use turnwire_event::Event;

use crate::args::{StartPosition, TailArgs};
use crate::connect;
use crate::session_source::SessionSource;
use crate::terminal::color::ColorMode;
use crate::terminal::event_line::EventLinePrinter;
use crate::terminal::sanitize;

/// Runs until the session is deleted, the reader goes away or, for a folder, the log ends.
pub(crate) async fn run(args: &TailArgs) -> Result<()> {
    let mut out = EventOutput {
        json: args.place.json,
        printer: EventLinePrinter::new(ColorMode::of_stdout()),
    };
    let done = match &args.place.data {
        None => follow(args, &mut out).await,
        Some(_) => read(args, &mut out).await,
    };
    match done {
        Err(error) if is_hang_up(&error) => Ok(()),
        done => done.with_context(|| connect::name(&args.place)),
    }
}

fn is_hang_up(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

async fn follow(args: &TailArgs, out: &mut EventOutput) -> Result<()> {
    let start = match args.from {
        StartPosition::After(at) => WatchStart::After(at),
        StartPosition::Now => WatchStart::Live,
    };
    let client = connect::client(&args.place.speaker)?;
    let filter = match args.workers {
        true => json!({"include_worker_sessions": true}),
        false => json!("preset:full"),
    };
    let mut watch = client.watch(args.place.session, filter, start);
    // Whose event was last: with workers, a line says when it is another's.
    let mut speaker = args.place.session;
    let mut was_lost = false;
    let mut look = tokio::time::interval(LOOK);
    loop {
        let item = tokio::select! {
            item = watch.next() => item?,
            _ = look.tick() => {
                if out.is_hung_up() {
                    return Ok(());
                }
                continue;
            }
        };
        let Some(item) = item else { break };
        match item {
            WatchItem::Connected { .. } => {
                if was_lost {
                    eprintln!("connected again");
                }
                was_lost = false;
            }
            WatchItem::Lost {
                reason: why,
                retry_in,
            } => {
                was_lost = true;
                out.text("")?;
                eprintln!(
                    "lost the server ({why}); again in {} ms",
                    retry_in.as_millis()
                );
            }
            WatchItem::Event(event) => match event.parse() {
                Some(parsed) if !out.json => {
                    if speaker != event.session_id {
                        speaker = event.session_id;
                        out.text(&format!("-- {speaker}\n"))?;
                    }
                    out.event(&parsed)?;
                }
                _ => out.raw(&event.raw)?,
            },
            WatchItem::Snapshot(snapshot) if out.json => out.raw(&snapshot.raw)?,
            WatchItem::Snapshot(snapshot) => {
                out.text(&format!("snapshot at {}\n", snapshot.position))?;
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

async fn read(args: &TailArgs, out: &mut EventOutput) -> Result<()> {
    let source: SessionSource = connect::source(&args.place)?;
    let mut since = match args.from {
        StartPosition::After(at) => Some(at),
        StartPosition::Now => return Ok(()),
    };
    loop {
        let page = source.events(args.place.session, since).await?;
        for (bytes, _) in &page.events {
            match Event::read(bytes) {
                Ok(event) if !out.json => out.event(&event)?,
                _ => out.raw(bytes)?,
            }
        }
        if let Some(seq) = page.damaged {
            anyhow::bail!(
                "record {} does not match its hash; see `turnwire verify`",
                seq.0
            );
        }
        if page.next.is_none() {
            return Ok(());
        }
        since = page.next;
    }
}

/// How often a quiet tail looks whether anyone still reads.
const LOOK: Duration = Duration::from_secs(1);

struct EventOutput {
    json: bool,
    printer: EventLinePrinter,
}

impl EventOutput {
    /// Whether whoever read has gone; only a write would tell otherwise, and none may be due.
    fn is_hung_up(&self) -> bool {
        let stdout = io::stdout();
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        let now = Timespec::default();
        let polled = rustix::event::poll(&mut fds, Some(&now));
        polled.is_ok() && fds[0].revents().contains(PollFlags::ERR)
    }

    /// An event for a person.
    fn event(&mut self, event: &Event) -> Result<()> {
        let text = self.printer.event(event);
        self.write(text.as_bytes())
    }

    /// Bytes that are already a line of JSON; a terminal gets hidden characters escaped.
    fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        let pause = self.printer.pause();
        let json = match io::stdout().is_terminal() {
            true => sanitize::json(bytes),
            false => Cow::Borrowed(bytes),
        };
        self.write(&[pause.as_bytes(), &json, b"\n"].concat())
    }

    /// A word of ours between the events, for a person only.
    fn text(&mut self, text: &str) -> Result<()> {
        let pause = self.printer.pause();
        let text = if self.json { "" } else { text };
        self.write(format!("{pause}{text}").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(())
    }
}
