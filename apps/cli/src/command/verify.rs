//! `turnwire verify`: reads a whole log, or the file of an export, checks it, and reports counts or
//! violations.

mod file;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use turnwire_event::{Position, Role, Seq, SessionId};
use turnwire_log::sqlite::SqliteStore;
use turnwire_log::{
    CallRecords as _, LogTail, MessageRecords as _, MessageView, PageBounds, ReadError, RowPage,
    TurnRecords as _,
};

use crate::args::{SourceArgs, VerifyArgs, VerifyTarget};
use crate::connect;
use crate::log_check::session_log::{LogVerdict, LogVerifier};
use crate::log_check::stored_contents::StoredContents;
use crate::log_check::stored_rows::{RowVerifier, SessionRows};
use crate::session_source::{self, SessionSource, SourcePage};
use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::output::print;
use crate::terminal::wording::counted;

/// Checks a session with [`LogVerifier`]; the exit code is 1 if a violation was found.
pub(crate) async fn run(args: VerifyArgs) -> Result<ExitCode> {
    match args.target.clone() {
        VerifyTarget::Session(session) => run_session(&args.source(session)).await,
        VerifyTarget::File(path) => run_file(&args, &path),
    }
}

/// Checks the file of an export; the exit code is 1 if it is refused.
fn run_file(args: &VerifyArgs, path: &Path) -> Result<ExitCode> {
    ensure!(
        args.data().is_none(),
        "{} is a file: it is checked by itself, without --data",
        path.display()
    );
    let checked = file::verify(path).with_context(|| format!("reading {}", path.display()))?;
    let verdict = &checked.verdict;
    print(&match args.json {
        true => {
            let mut report = as_json(checked.session, verdict);
            report["file_sha256"] = checked.sha256.clone().into();
            format!("{report:#}\n")
        }
        false => {
            let mut text = as_text(verdict, ColorMode::of_stdout());
            if let Some(sha256) = checked
                .sha256
                .as_ref()
                .filter(|_| verdict.violation_count == 0)
            {
                let tick = ColorMode::of_stdout().tint(TextTone::Good, "✓");
                text.push_str(&format!(
                    "{tick} file of {} has SHA-256 {sha256}\n",
                    checked.name()
                ));
            }
            text
        }
    });
    Ok(ExitCode::from(u8::from(verdict.violation_count > 0)))
}

async fn run_session(args: &SourceArgs) -> Result<ExitCode> {
    let verdict = verify(args).await.with_context(|| connect::context(args))?;
    print(&match args.json {
        true => format!("{:#}\n", as_json(args.session, &verdict)),
        false => as_text(&verdict, ColorMode::of_stdout()),
    });
    Ok(ExitCode::from(u8::from(!verdict.violations.is_empty())))
}

async fn verify(args: &SourceArgs) -> Result<LogVerdict> {
    let (source, session) = (connect::source(args)?, args.session);
    // Before the events: every event that a row refers to is written before the row is visible.
    let folder = match &source {
        SessionSource::Folder(store) => Some(FolderCheck::new(store, session)?),
        SessionSource::Server(_) => None,
    };
    let mut page = source.events(session, None).await?;
    // Read after the first page, so that the contents of its events are stored.
    let messages = source.messages(session, None).await?;
    let contents: StoredContents = messages.into_iter().collect();
    let mut verifier = LogVerifier::new(session, page.previous, contents);
    let mut folder = folder;
    loop {
        if let Some(folder) = &mut folder {
            folder.check(&page, &mut verifier)?;
        }
        for (bytes, hash) in &page.events {
            verifier.check(bytes, *hash);
        }
        if let Some(seq) = page.damaged {
            verifier.damaged(seq);
        }
        if page.next.is_none() {
            if let Some(folder) = folder {
                folder.finish(page.damaged.is_none(), &mut verifier)?;
            }
            return Ok(verifier.finish());
        }
        page = source.events(session, page.next).await?;
    }
}

/// Checks what only a data folder has: columns, rows, and the losses of its WAL.
struct FolderCheck<'a> {
    store: &'a SqliteStore,
    session: SessionId,
    /// The log before any row was read.
    tail: LogTail,
    rows: RowVerifier,
    /// The event after which the next page begins.
    after: Seq,
}

impl<'a> FolderCheck<'a> {
    fn new(store: &'a SqliteStore, session: SessionId) -> Result<Self> {
        let tail = session_source::tail(store, session)?;
        let rows = SessionRows {
            upto: tail.seq,
            turns: all_pages(|before| store.turns(session, before, ROWS), |row| row.id)?,
            tools: all_pages(
                |before| store.tool_calls(session, before, ROWS),
                |row| row.tool_use_id,
            )?,
            messages: user_messages(store, session)?.into(),
            last_reference: store.last_reference(session)?,
        };
        Ok(Self {
            store,
            session,
            tail,
            rows: RowVerifier::new(rows),
            after: tail.low,
        })
    }

    fn check(&mut self, page: &SourcePage, verifier: &mut LogVerifier) -> Result<()> {
        let upto = Seq(self.after.0 + page.events.len() as u64);
        let columns = self.store.event_columns(self.session, self.after, upto)?;
        // Retention may remove columns between the two reads.
        let first = columns.first().map_or(upto, |columns| columns.seq.prev());
        let skipped = usize::try_from(first.0.saturating_sub(self.after.0))?;
        for (at, (bytes, _)) in page.events.iter().enumerate() {
            let columns = at.checked_sub(skipped).and_then(|at| columns.get(at));
            for (event, description) in self.rows.check(bytes, columns) {
                verifier.violate(event, description);
            }
        }
        self.after = upto;
        Ok(())
    }

    /// Compares the rows with the end of the log, unless it `is_complete` only up to a damaged
    /// event.
    fn finish(self, is_complete: bool, verifier: &mut LogVerifier) -> Result<()> {
        let end = verifier.last().map_or(self.tail.low, |last| last.seq);
        if is_complete {
            for (event, description) in self.rows.finish(self.tail.low, end) {
                verifier.violate(event, description);
            }
        }
        let losses = self.store.wal_losses(self.session)?;
        let last = verifier.last().unwrap_or(self.tail.position());
        if losses.pending_frames > 0 {
            let frames = losses.pending_frames;
            let description = format!(
                "the WAL is damaged: {frames} committed frames are lost, and events after it may be missing"
            );
            verifier.violate(last, description);
        }
        // Retention has removed the events from before the loss, and with them the gap.
        let first = verifier.first();
        let is_after_loss =
            first.is_some_and(|first| self.tail.low > Seq(0) && first.epoch == self.tail.epoch);
        if losses.recorded_frames > 0 && !is_after_loss {
            let frames = losses.recorded_frames;
            let description = format!(
                "a damaged WAL lost {frames} committed frames, and events before epoch {} may be missing",
                self.tail.epoch.0
            );
            verifier.violate(
                verifier.last_before(self.tail.epoch).unwrap_or(last),
                description,
            );
        }
        Ok(())
    }
}

/// Rows read at once: 200, or 4 MB.
const ROWS: PageBounds = PageBounds {
    rows: 200,
    bytes: 4 << 20,
};

/// All rows of a list that is read in pages, newest first.
fn all_pages<T, K, U: From<T>>(
    mut read: impl FnMut(Option<K>) -> Result<RowPage<T>, ReadError>,
    key: impl Fn(&T) -> K,
) -> Result<Vec<U>> {
    let mut rows = Vec::new();
    let mut before = None;
    loop {
        let page = read(before)?;
        before = page.rows.last().map(&key);
        rows.extend(page.rows.into_iter().map(U::from));
        if !page.has_more {
            return Ok(rows);
        }
    }
}

/// The messages of users, in whatever place they are.
fn user_messages(store: &SqliteStore, session: SessionId) -> Result<StoredContents> {
    // A message beyond the end of the log is read too.
    let upto = Position::LAST;
    let view = MessageView::Orchestrator;
    let mut messages = StoredContents::default();
    let mut before = None;
    loop {
        let page = store.messages(session, view, upto, before, ROWS)?;
        before = page.rows.first().map(|message| message.id);
        let users = page.rows.iter();
        let users = users.filter(|message| message.role == Role::User);
        users.for_each(|message| messages.add(message));
        if !page.has_more {
            return Ok(messages);
        }
    }
}

fn as_text(verdict: &LogVerdict, color: ColorMode) -> String {
    if !verdict.violations.is_empty() {
        let cross = color.tint(TextTone::Bad, "✗");
        let violations = verdict.violations.iter();
        let mut text: String = violations
            .map(|violation| format!("{cross} {}: {}\n", violation.event, violation.description))
            .collect();
        let more = verdict.violation_count - verdict.violations.len() as u64;
        if more > 0 {
            text.push_str(&format!("and {more} more\n"));
        }
        return text;
    }
    let last = verdict.last.map_or(0, |last| last.seq.0);
    let (ended, open) = verdict.turns;
    let (matched, missing) = verdict.contents;
    let events = match verdict.first {
        0 => "no events".to_owned(),
        first => format!("{first}…{last} contiguous"),
    };
    let tick = color.tint(TextTone::Good, "✓");
    let lines = [
        Some(events),
        (verdict.first > 1).then(|| format!("1…{} trimmed by retention", verdict.first - 1)),
        Some(counted(ended, "turn") + " with one terminal each"),
        (open > 0).then(|| counted(open, "turn") + " in flight"),
        Some(counted(verdict.tools, "tool") + " called and closed"),
        Some(counted(matched, "content") + " match their hashes"),
        (missing > 0).then(|| counted(missing, "content") + " not stored, skipped"),
        Some(format!("hash chain ends with {}", hex(verdict))),
    ];
    let lines = lines.into_iter().flatten();
    lines.map(|line| format!("{tick} {line}\n")).collect()
}

fn as_json(session: SessionId, verdict: &LogVerdict) -> serde_json::Value {
    json!({
        "session_id": session,
        "ok": verdict.violations.is_empty(),
        "first_seq": verdict.first,
        "last_event_id": verdict.last,
        "turns_ended": verdict.turns.0,
        "turns_in_flight": verdict.turns.1,
        "tools_closed": verdict.tools,
        "contents_matched": verdict.contents.0,
        "contents_missing": verdict.contents.1,
        "hash": hex(verdict),
        "violations": verdict.violations,
        "violation_count": verdict.violation_count,
    })
}

fn hex(verdict: &LogVerdict) -> String {
    verdict.hash.0.map(|byte| format!("{byte:02x}")).concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_check::session_log::LogViolation;
    use turnwire_event::{Epoch, Position, Seq};
    use turnwire_log::chain::ChainHash;

    fn verdict(violations: Vec<LogViolation>) -> LogVerdict {
        LogVerdict {
            first: 1,
            last: Some(Position::persisted(Epoch(1), Seq(4_812))),
            turns: (12, 1),
            tools: 1,
            contents: (24, 0),
            hash: ChainHash([0xab; 32]),
            violation_count: violations.len() as u64,
            violations,
        }
    }

    #[test]
    fn valid_log_is_reported_as_ticked_counts() {
        let text = as_text(&verdict(Vec::new()), ColorMode::Plain);
        let expected = [
            "✓ 1…4812 contiguous",
            "✓ 12 turns with one terminal each",
            "✓ 1 turn in flight",
            "✓ 1 tool called and closed",
            "✓ 24 contents match their hashes",
        ];
        assert_eq!(text.lines().take(5).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn violation_names_its_event() {
        let violation = LogViolation {
            event: "evt_00010000000003".into(),
            description: "does not match its hash".into(),
        };
        let verdict = verdict(vec![violation]);
        assert_eq!(
            as_text(&verdict, ColorMode::Plain),
            "✗ evt_00010000000003: does not match its hash\n"
        );
        let json = as_json(SessionId(turnwire_event::Ulid(1)), &verdict);
        assert_eq!(json["ok"], false);
        assert_eq!(json["violations"][0]["event"], "evt_00010000000003");
    }
}
