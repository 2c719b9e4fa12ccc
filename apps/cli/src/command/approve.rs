//! `turnwire approve`: a person's decision on the approval requests of a paused turn.

use anyhow::{Context as _, Result, ensure};
use turnwire_event::code::{ApprovalState, Decision};
use turnwire_wire::rest::approval::{ApprovalAnswer, ApprovalRecord, ApprovalsAnswered};

use crate::args::ApproveArgs;
use crate::connect;
use crate::terminal::output::print;
use crate::terminal::sanitize::sanitized_line;

/// The longest name of a tool that is shown.
const NAME_CHARS_MAX: usize = 64;
/// The longest input that is shown.
const INPUT_CHARS_MAX: usize = 200;

/// Sends the decision and prints the result.
pub(crate) async fn run(args: &ApproveArgs) -> Result<()> {
    let client = connect::client(&args.client)?;
    let server = &args.client.server;
    let list = client.approvals(args.turn).await;
    let list = list.with_context(|| format!("asking {server} for the approval requests"))?;
    let requests = select(args, list.approvals)?;
    let decision = match args.reject {
        true => Decision::Reject,
        false => Decision::Approve,
    };
    let answers = requests.iter().map(|request| ApprovalAnswer {
        approval_id: request.approval_id.to_string(),
        decision,
        input_sha256: None,
        comment: args.comment.clone(),
    });
    let answered = client.decide_approvals(args.turn, answers.collect()).await;
    let answered = answered.with_context(|| format!("answering at {server}"))?;
    print(&match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&answered)?),
        false => as_text(&requests, decision, &answered),
    });
    Ok(())
}

/// The requests that the decision is for: the one that is named, or all open ones.
fn select(args: &ApproveArgs, mut requests: Vec<ApprovalRecord>) -> Result<Vec<ApprovalRecord>> {
    let turn = args.turn;
    if let Some(id) = args.approval {
        requests.retain(|request| request.approval_id == id);
        ensure!(
            !requests.is_empty(),
            "turn {turn} has no approval request {id}"
        );
    } else {
        requests.retain(|request| request.state == ApprovalState::Pending);
        ensure!(
            !requests.is_empty(),
            "turn {turn} has no open approval request"
        );
    }
    Ok(requests)
}

fn as_text(
    requests: &[ApprovalRecord],
    decision: Decision,
    answered: &ApprovalsAnswered,
) -> String {
    let decision = match decision {
        Decision::Approve => "approved",
        Decision::Reject => "rejected",
    };
    let line = |request: &ApprovalRecord| {
        let name = sanitized_line(&request.tool_name, NAME_CHARS_MAX);
        let input = sanitized_line(&request.input_summary, INPUT_CHARS_MAX);
        format!("{decision} {} {name} {input}\n", request.approval_id)
    };
    let last = match answered.next_turn_id {
        Some(next) => format!("turn {next} goes on\n"),
        None => format!("{} more to answer\n", answered.remaining),
    };
    requests.iter().map(line).chain([last]).collect()
}
