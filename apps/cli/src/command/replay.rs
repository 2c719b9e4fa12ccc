//! `turnwire replay`: the bytes that a client of a wire receives.
//!
//! ```text
//!   file of events ────────────────────────────────────┐
//!   session ── store ── turnwire_session::read_chunk ──┴─▶ WireProjection ─▶ standard output
//! ```
//! Reading, replaying and projecting are those of the server: there is no second path from an event
//! to a client.

mod projection;
mod file;
mod folder;

use std::io::{self, BufReader, BufWriter, Write};

use anyhow::{Context as _, Result, bail, ensure};
use turnwire_event::SessionId;

use crate::args::{ReplayArgs, ReplayWire};
use crate::command::settings;
use crate::connect;
use crate::terminal::output::unless_closed;

use projection::WireProjection;

/// Prints all events, or those before the first that cannot be read.
pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    ensure!(
        args.wire == ReplayWire::Pc3 || args.version.is_none(),
        "--version is for --wire pc3; the session wire has one version"
    );
    let mut out = BufWriter::new(io::stdout().lock());
    let result = replay(args, &mut out);
    // The events before an error are printed too.
    let flushed = out.flush();
    unless_closed(result.and(flushed.map_err(Into::into)))
}

fn replay(args: &ReplayArgs, out: &mut impl Write) -> Result<()> {
    let mut projection = WireProjection::new(args);
    let name = args.source.as_str();
    if let Ok(session) = name.parse::<SessionId>() {
        let dir = settings::home(args.home.clone())?;
        let store = connect::folder(&dir)?;
        folder::replay(&store, session, args.turn, &mut projection, out)
            .with_context(|| format!("reading {session} of {}", dir.display()))?;
    } else if name == "-" {
        file::replay("<stdin>", &mut io::stdin().lock(), &mut projection, out)?;
    } else {
        let file = std::fs::File::open(name).with_context(|| {
            format!("{name} is neither a session id (sess_…) nor a file that can be read")
        })?;
        file::replay(name, &mut BufReader::new(file), &mut projection, out)?;
    }
    if let Some(turn) = args.turn.filter(|_| !projection.has_events) {
        bail!("there is no turn {turn} in {name}");
    }
    if let Some(warning) = projection.warning() {
        eprintln!("{warning}");
    }
    Ok(())
}
