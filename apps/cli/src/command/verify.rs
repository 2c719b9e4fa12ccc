//! `turnwire verify`: reads the whole log, has it checked, and says what was found.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::json;
use turnwire_event::SessionId;

use crate::args::VerifyArgs;
use crate::connect;
use crate::log_check::session_log::{LogVerdict, LogVerifier};
use crate::session_source::SessionSource;
use crate::terminal::color::{ColorMode, TextTone};

/// Checks a session; the exit code says whether all is well.
pub(crate) async fn run(args: &VerifyArgs) -> Result<ExitCode> {
    let source = connect::source(&args.place)?;
    let verdict = read(&source, args.place.session)
        .await
        .with_context(|| connect::name(&args.place))?;
    let text = if args.place.json {
        format!("{:#}\n", as_json(args.place.session, &verdict))
    } else {
        as_text(&verdict, ColorMode::of_stdout())
    };
    // Whoever reads may have seen enough; the exit code still tells.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::from(u8::from(!verdict.violations.is_empty())))
}

async fn read(source: &SessionSource, session: SessionId) -> Result<LogVerdict> {
    let mut page = source.events(session, None).await?;
    // Read after the first page, so that what the log vouches for is there to be compared.
    let messages = source.messages(session).await?;
    let mut verifier = LogVerifier::new(session, page.previous, messages);
    loop {
        for (bytes, hash) in &page.events {
            verifier.take(bytes, *hash);
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

fn as_text(verdict: &LogVerdict, paint: ColorMode) -> String {
    let last = verdict.last.map_or(0, |last| last.seq.0);
    let (ended, open) = verdict.turns;
    let (checked, missing) = verdict.contents;
    let mut lines = vec![match verdict.first {
        0 => "no events".to_owned(),
        first => format!("{first}…{last} contiguous"),
    }];
    if verdict.first > 1 {
        lines.push(format!("1…{} trimmed by retention", verdict.first - 1));
    }
    lines.push(format!("{} with one terminal each", count(ended, "turn")));
    if open > 0 {
        lines.push(format!("{} in flight", count(open, "turn")));
    }
    lines.push(format!(
        "{} called and closed",
        count(verdict.tools, "tool")
    ));
    lines.push(format!("{} as the log vouches", count(checked, "content")));
    if missing > 0 {
        lines.push(format!(
            "{} not there to be compared",
            count(missing, "content")
        ));
    }
    lines.push(format!("hash chain ends with {}", hex(&verdict.hash.0)));
    if !verdict.violations.is_empty() {
        return verdict
            .violations
            .iter()
            .map(|v| {
                format!(
                    "{} {}: {}\n",
                    paint.tint(TextTone::Bad, "✗"),
                    v.event,
                    v.what
                )
            })
            .collect();
    }
    lines
        .iter()
        .map(|line| format!("{} {line}\n", paint.tint(TextTone::Good, "✓")))
        .collect()
}

fn as_json(session: SessionId, verdict: &LogVerdict) -> serde_json::Value {
    let violations: Vec<_> = verdict
        .violations
        .iter()
        .map(|v| json!({"event": v.event, "what": v.what}))
        .collect();
    json!({
        "session_id": session,
        "ok": violations.is_empty(),
        "first_seq": verdict.first,
        "last_event_id": verdict.last,
        "turns_ended": verdict.turns.0,
        "turns_in_flight": verdict.turns.1,
        "tools_closed": verdict.tools,
        "contents_matched": verdict.contents.0,
        "contents_missing": verdict.contents.1,
        "hash": hex(&verdict.hash.0),
        "violations": violations,
    })
}

fn count(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
    fn a_sound_log_is_told_in_ticks() {
        let text = as_text(&verdict(Vec::new()), ColorMode::Plain);
        let expected = [
            "✓ 1…4812 contiguous",
            "✓ 12 turns with one terminal each",
            "✓ 1 turn in flight",
            "✓ 1 tool called and closed",
            "✓ 24 contents as the log vouches",
        ];
        assert_eq!(text.lines().take(5).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_violation_names_its_event() {
        let violation = LogViolation {
            event: "evt_00010000000003".into(),
            what: "does not match its hash".into(),
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
