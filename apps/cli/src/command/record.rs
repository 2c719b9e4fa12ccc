//! `turnwire record`: writes a stored session as a script with the same answers, and as a case with
//! the expected results.
//!
//! ```text
//! store ─▶ StoredSession (events, all messages) ─┬▶ model_calls ─▶ script.yaml
//!                                                └▶ observed ────▶ case.yaml
//! ```
//! The folder is only read. Tools run again when the case is run; their results are not recorded.

mod stored_session;
mod model_calls;
mod script_writer;

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use turnwire_event::ContentBlock;
use turnwire_event::body::turn::TurnStarted;
use turnwire_event::code::Origin;

use crate::args::RecordArgs;
use crate::regression::observed::{self, ObservedTurn};
use crate::regression::test_case::{CaseInput, CaseTurn, RegressionCase};
use crate::terminal::wording::counted;
use crate::{command::settings, connect};

use stored_session::StoredSession;

/// Writes both files and prints their paths.
pub(crate) fn run(args: &RecordArgs) -> Result<()> {
    let home = settings::home(args.home.clone())?;
    let store = connect::folder(&home)?;
    let reading = || format!("reading {} of {}", args.session, home.display());
    let stored = StoredSession::read(&store, args.session).with_context(reading)?;
    if stored.trimmed > 0 {
        let last = stored.trimmed;
        eprintln!("events 1…{last} were trimmed by retention; the turns in them are left out");
    }
    let call_attempts = model_calls::read(&stored);
    let (script, warnings) = script_writer::write(&call_attempts, args.paced);
    for warning in warnings {
        eprintln!("{warning}");
    }
    let turns = turns(&stored)?;
    let count = counted(turns.len() as u64, "turn");
    let case = RegressionCase::new(args.session.to_string(), turns).to_yaml()?;
    let default = || PathBuf::from(args.session.to_string());
    let dir = args.out.clone().unwrap_or_else(default);
    // The files contain the conversation, so only their owner can read them.
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    created.with_context(|| format!("creating {}", dir.display()))?;
    let files = [("script.yaml", script), ("case.yaml", case)];
    let files = files.map(|(name, text)| (dir.join(name), text));
    for (path, _) in &files {
        ensure!(
            args.force || !path.exists(),
            "{} exists; name another folder with --out, or overwrite it with --force",
            path.display()
        );
    }
    for (path, text) in &files {
        write_file(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let dir = dir.display();
    println!("{count}, in {dir}");
    println!("  turnwire serve --script {dir}/script.yaml   with the pack it was recorded with");
    println!("  turnwire rerun {dir}/case.yaml");
    Ok(())
}

/// Writes a file that only its owner can read.
fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// The turns of a [`StoredSession`] that ended, with their results.
fn turns(stored: &StoredSession) -> Result<Vec<CaseTurn>> {
    let messages = stored.shown.iter().map(|shown| shown.message.clone());
    let observed = observed::turns(&stored.events, &messages.collect::<Vec<_>>());
    let turns = observed
        .into_iter()
        .filter_map(|turn| case_turn(stored, turn));
    let turns: Vec<CaseTurn> = turns.collect();
    ensure!(!turns.is_empty(), "no turn of the session has ended");
    Ok(turns)
}

fn case_turn(stored: &StoredSession, turn: ObservedTurn) -> Option<CaseTurn> {
    let Some(expect) = turn.result else {
        eprintln!("turn {} has not ended; it is left out", turn.id);
        return None;
    };
    let started = &turn.started;
    let user_message = stored.message(started.user_message_id);
    let location = user_message.and_then(|user| user.message.metadata.get_str("location"));
    Some(CaseTurn {
        message: input(started),
        locale: Some(started.locale.clone()).filter(|tag| !tag.is_empty()),
        location,
        origin: started.origin.filter(|origin| *origin != Origin::Chat),
        dm_type: started.dm_type.clone(),
        expect,
    })
}

fn input(started: &TurnStarted) -> CaseInput {
    let texts = started.input.iter().filter_map(ContentBlock::as_text);
    let mut texts: Vec<String> = texts.map(str::to_owned).collect();
    match texts.len() {
        1 => CaseInput::Text(texts.remove(0)),
        _ => CaseInput::TextBlocks(texts),
    }
}
