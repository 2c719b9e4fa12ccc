//! `turnwire replay`: what a client of a wire would have got, as its bytes.
//!
//! ```text
//!   file of events ──────────────────────────────┐
//!   session ── store ── session::replay::chunk ──┴─▶ Projection ─▶ standard output
//! ```
//! Reading, telling again and projecting are those of the server: there is no second path from an
//! event to a client.

mod projection;
mod file;
mod folder;

use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write};

use anyhow::{Context as _, Result, bail};
use turnwire_event::SessionId;

use crate::args::{ReplayArgs, ReplayWire};
use crate::command::settings;
use crate::connect;

use projection::Projection;

/// Prints everything, or up to what cannot be read.
pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    if args.wire == ReplayWire::Session && args.version.is_some() {
        bail!("--version is for --wire pc3; the session wire has one version");
    }
    let mut projection = Projection::new(args.wire, args.version, args.turn);
    let mut out = BufWriter::new(io::stdout().lock());
    let result = tell(args, &mut projection, &mut out);
    // What was told before something could not be read is told all the same.
    let flushed = out.flush();
    match result.and(flushed.map_err(Into::into)) {
        Err(error) if is_hang_up(&error) => Ok(()),
        told => told,
    }
}

fn is_hang_up(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn tell(args: &ReplayArgs, projection: &mut Projection, out: &mut impl Write) -> Result<()> {
    let name = args.source.as_str();
    if let Ok(session) = name.parse::<SessionId>() {
        let dir = settings::home(args.home.clone())?;
        let reading = || format!("reading {session} of {}", dir.display());
        let store = connect::folder(&dir)?;
        folder::tell(&store, session, args.turn, projection, out).with_context(reading)?;
    } else if name == "-" {
        file::tell("<stdin>", &mut io::stdin().lock(), projection, out)?;
    } else {
        let file = std::fs::File::open(name).with_context(|| {
            format!("{name} is neither a session id (sess_…) nor a file that can be read")
        })?;
        let mut lines: Box<dyn BufRead> = Box::new(BufReader::new(file));
        file::tell(name, &mut lines, projection, out)?;
    }
    if let Some(turn) = args.turn.filter(|_| !projection.met_turn()) {
        bail!("there is no turn {turn} in {name}");
    }
    if let Some(word) = projection.afterword() {
        eprintln!("{word}");
    }
    Ok(())
}
