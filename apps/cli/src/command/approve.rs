//! `turnwire approve`: what a person says to the questions of a paused turn.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use turnwire_event::code::{ApprovalState, Decision};
use turnwire_wire::rest::approval::{ApprovalAnswer, ApprovalRecord, ApprovalsAnswered};

use crate::args::ApproveArgs;
use crate::connect;
use crate::terminal::sanitize::line;

/// The longest name of a tool that is shown.
const NAME_CHARS_MAX: usize = 64;
/// The most of an input that is shown.
const INPUT_CHARS_MAX: usize = 200;

/// Answers, and prints what happened.
pub(crate) async fn run(args: &ApproveArgs) -> Result<()> {
    let client = connect::client(&args.speaker)?;
    let response = client.approvals(args.turn).await;
    let approvals =
        response.with_context(|| format!("asking {} what the turn asks", server(args)))?;
    let chosen = chosen(args, approvals.approvals)?;
    let decision = match args.reject {
        true => Decision::Reject,
        false => Decision::Approve,
    };
    let answers = chosen.iter().map(|question| ApprovalAnswer {
        approval_id: question.approval_id.to_string(),
        decision,
        comment: args.comment.clone(),
    });
    let answered = client.decide_approvals(args.turn, answers.collect()).await;
    let answered = answered.with_context(|| format!("answering at {}", server(args)))?;
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(&answered)?)
    } else {
        as_text(&chosen, decision, &answered)
    };
    // Whoever reads may have seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn server(args: &ApproveArgs) -> &str {
    &args.speaker.server
}

/// The questions that the answer is for.
fn chosen(args: &ApproveArgs, asked: Vec<ApprovalRecord>) -> Result<Vec<ApprovalRecord>> {
    let Some(id) = args.approval else {
        let open = |question: &ApprovalRecord| question.state == ApprovalState::Pending;
        let open: Vec<_> = asked.into_iter().filter(open).collect();
        if open.is_empty() {
            bail!("turn {} asks nothing that has no answer", args.turn);
        }
        return Ok(open);
    };
    let mut one = asked;
    one.retain(|question| question.approval_id == id);
    if one.is_empty() {
        bail!("turn {} has not asked {id}", args.turn);
    }
    Ok(one)
}

fn as_text(chosen: &[ApprovalRecord], decision: Decision, answered: &ApprovalsAnswered) -> String {
    let word = match decision {
        Decision::Approve => "approved",
        Decision::Reject => "rejected",
    };
    let mut text = String::new();
    for question in chosen {
        let name = line(&question.tool_name, NAME_CHARS_MAX);
        let input = line(&question.input_summary, INPUT_CHARS_MAX);
        let _ = writeln!(text, "{word} {} {name} {input}", question.approval_id);
    }
    let _ = match answered.next_turn_id {
        Some(next) => writeln!(text, "turn {next} goes on"),
        None => writeln!(text, "{} more to answer", answered.remaining),
    };
    text
}
