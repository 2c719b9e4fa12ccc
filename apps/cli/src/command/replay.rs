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

use crate::args::{ReplayArgs, ReplayWire, TurnName};
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
    let name = args.source.as_str();
    let (turn, projection) = if let Ok(session) = name.parse::<SessionId>() {
        let dir = settings::home(args.home.clone())?;
        let store = connect::folder(&dir)?;
        let about = || format!("reading {session} of {}", dir.display());
        let turn = args.turn.as_ref();
        let turn = turn.map(|turn| folder::find_turn(&store, session, turn));
        let turn = turn.transpose().with_context(about)?;
        let mut projection = WireProjection::new(args, turn);
        folder::replay(&store, session, turn, &mut projection, out).with_context(about)?;
        (turn, projection)
    } else {
        let turn = match &args.turn {
            None => None,
            Some(TurnName::Turn(turn)) => Some(*turn),
            Some(TurnName::Upstream(id)) => {
                bail!("{id} is not a turn id: a turn of a file is named by that (01J…)")
            }
        };
        let mut projection = WireProjection::new(args, turn);
        if name == "-" {
            file::replay("<stdin>", &mut io::stdin().lock(), &mut projection, out)?;
        } else {
            let file = std::fs::File::open(name).with_context(|| {
                format!("{name} is neither a session id (sess_…) nor a file that can be read")
            })?;
            file::replay(name, &mut BufReader::new(file), &mut projection, out)?;
        }
        (turn, projection)
    };
    if let Some(turn) = turn.filter(|_| !projection.has_events) {
        bail!("there is no turn {turn} in {name}");
    }
    if let Some(warning) = projection.warning() {
        eprintln!("{warning}");
    }
    Ok(())
}
