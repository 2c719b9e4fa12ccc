//! `turnwire record`: a stored session as a script that says the same again, and as a case that says
//! what is expected to come of it.
//!
//! ```text
//! store ─▶ Stored (events, messages, also those on no wire) ─┬▶ calls ─▶ script.yaml
//!                                                            └▶ seen ──▶ case.yaml
//! ```
//! The folder is only read. Tools run again when the case is played; what they gave is not kept.

mod stored_session;
mod model_calls;
mod script_writer;

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use turnwire_event::ContentBlock;
use turnwire_event::body::turn::TurnStarted;
use turnwire_event::code::Origin;

use crate::args::RecordArgs;
use crate::regression::observed::{self, ObservedTurn};
use crate::regression::test_case::{CaseInput, CaseTurn, RegressionCase};
use crate::{command::settings, connect};

use stored_session::StoredSession;

/// Writes both files, and says where they are.
pub(crate) fn run(args: &RecordArgs) -> Result<()> {
    let home = settings::home(args.home.clone())?;
    let store = connect::folder(&home)?;
    let reading = || format!("reading {} of {}", args.session, home.display());
    let stored = StoredSession::read(&store, args.session).with_context(reading)?;
    if stored.trimmed > 0 {
        eprintln!(
            "events 1…{} were trimmed by retention; the turns in them are left out",
            stored.trimmed
        );
    }
    let calls = model_calls::of(&stored);
    let (script, strays) = script_writer::write(&calls, args.paced);
    for stray in strays {
        eprintln!("{stray}");
    }
    let turns = turns(&stored)?;
    let count = turns.len();
    let case = RegressionCase::new(args.session.to_string(), turns).write()?;
    let dir = match &args.out {
        Some(dir) => dir.clone(),
        None => PathBuf::from(args.session.to_string()),
    };
    folder(&dir).with_context(|| format!("making {}", dir.display()))?;
    let files = [("script.yaml", script), ("case.yaml", case)];
    let files = files.map(|(name, text)| (dir.join(name), text));
    for (path, _) in files.iter().filter(|_| !args.force) {
        free(path)?;
    }
    for (path, text) in &files {
        put(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let s = if count == 1 { "" } else { "s" };
    println!("{count} turn{s}, in {}", dir.display());
    println!(
        "  turnwire serve --script {0}/script.yaml   with the pack it was recorded with\n  \
         turnwire rerun {0}/case.yaml",
        dir.display()
    );
    Ok(())
}

/// A folder for whoever records alone: what people said stands in it.
fn folder(dir: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// A file that is there is not written over unasked.
fn free(path: &Path) -> Result<()> {
    if path.exists() {
        bail!(
            "{} is there already; name another folder with --out, or write it anew with --force",
            path.display()
        );
    }
    Ok(())
}

/// Writes a file that only its owner can read.
fn put(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// The turns that ended, with what came of them.
fn turns(stored: &StoredSession) -> Result<Vec<CaseTurn>> {
    let messages: Vec<_> = stored.shown.iter().map(|one| one.message.clone()).collect();
    let seen = observed::turns(&stored.events, &messages);
    let turns: Vec<CaseTurn> = seen
        .into_iter()
        .filter_map(|seen| turn(stored, seen))
        .collect();
    if turns.is_empty() {
        bail!("the session has no turn that has ended");
    }
    Ok(turns)
}

fn turn(stored: &StoredSession, seen: ObservedTurn) -> Option<CaseTurn> {
    let expect = match seen.came {
        Some(came) => came,
        None => {
            eprintln!("turn {} has not ended; it is left out", seen.id);
            return None;
        }
    };
    let started = &seen.started;
    let user_message = stored.message(started.user_message_id);
    let location = user_message.and_then(|asked| asked.message.metadata.get("location")?.as_str());
    Some(CaseTurn {
        message: words(started),
        locale: Some(started.locale.clone()).filter(|tag| !tag.is_empty()),
        location: location.map(str::to_owned),
        origin: started.origin.filter(|origin| *origin != Origin::Chat),
        dm_type: started.dm_type.clone(),
        expect,
    })
}

fn words(started: &TurnStarted) -> CaseInput {
    let texts = started.input.iter().filter_map(ContentBlock::as_text);
    let mut texts: Vec<String> = texts.map(str::to_owned).collect();
    match texts.len() {
        1 => CaseInput::One(texts.remove(0)),
        _ => CaseInput::Many(texts),
    }
}
