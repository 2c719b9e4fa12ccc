//! `turnwire verify`: reads a whole log, checks it, and reports counts or violations.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::json;
use turnwire_event::SessionId;

use crate::args::SourceArgs;
use crate::connect;
use crate::log_check::session_log::{LogVerdict, LogVerifier};
use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::output::print;
use crate::terminal::wording::counted;

/// Checks a session with [`LogVerifier`]; the exit code is 1 if a violation was found.
pub(crate) async fn run(args: &SourceArgs) -> Result<ExitCode> {
    let verdict = verify(args).await.with_context(|| connect::context(args))?;
    print(&match args.json {
        true => format!("{:#}\n", as_json(args.session, &verdict)),
        false => as_text(&verdict, ColorMode::of_stdout()),
    });
    Ok(ExitCode::from(u8::from(!verdict.violations.is_empty())))
}

async fn verify(args: &SourceArgs) -> Result<LogVerdict> {
    let (source, session) = (connect::source(args)?, args.session);
    let mut page = source.events(session, None).await?;
    // Read after the first page, so that the contents of its events are stored.
    let messages = source.messages(session, None).await?;
    let mut verifier = LogVerifier::new(session, page.previous, messages);
    loop {
        for (bytes, hash) in &page.events {
            verifier.check(bytes, *hash);
        }
        if let Some(seq) = page.damaged {
            verifier.damaged(seq);
        }
        if page.next.is_none() {
            return Ok(verifier.finish());
        }
        page = source.events(session, page.next).await?;
    }
}

fn as_text(verdict: &LogVerdict, color: ColorMode) -> String {
    if !verdict.violations.is_empty() {
        let cross = color.tint(TextTone::Bad, "✗");
        let violations = verdict.violations.iter();
        return violations
            .map(|violation| format!("{cross} {}: {}\n", violation.event, violation.description))
            .collect();
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
