//! `turnwire approve`: a person's decision on the approval requests of a paused turn.
//!
//! An approval is sent only with the digest of an input that was shown as a whole: here, before the
//! prompt, or earlier, where `--input-sha256` names it. A rejection needs no look.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result, bail, ensure};
use turnwire_client::Client;
use turnwire_event::TurnId;
use turnwire_event::code::{ApprovalState, Decision};
use turnwire_event::content::sha256_hex;
use turnwire_wire::rest::approval::{
    ApprovalAnswer, ApprovalItem, ApprovalRecord, ApprovalsAnswered,
};

use crate::args::ApproveArgs;
use crate::connect;
use crate::terminal::approval_text::{NOT_A_DECISION, approval_text, parse_decision, tool_name};
use crate::terminal::keyboard;
use crate::terminal::output::print;
use crate::terminal::sanitize::json_line;

/// Shows the requests, sends the decision, and prints the result.
pub(crate) async fn run(args: &ApproveArgs) -> Result<()> {
    let client = connect::client(&args.client)?;
    let server = &args.client.server;
    let list = client.approvals(args.turn).await;
    let list = list.with_context(|| format!("asking {server} for the approval requests"))?;
    let requests = select(args, list.approvals)?;
    let answers = match (args.reject, &args.input_sha256) {
        (true, _) => answers(args, &requests, Decision::Reject),
        (false, Some(digest)) => {
            let mut answers = answers(args, &requests, Decision::Approve);
            for answer in &mut answers {
                answer.input_sha256 = Some(digest.clone());
            }
            answers
        }
        (false, None) => {
            let items = read_items(&client, args.turn, &requests).await;
            let items = items.with_context(|| format!("asking {server} for the inputs"))?;
            if args.show {
                return show(args, &items);
            }
            ask_all(args, &items)?
        }
    };
    let answered = client.decide_approvals(args.turn, answers.clone()).await;
    let answered = answered.with_context(|| format!("answering at {server}"))?;
    print(&match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&answered)?),
        false => as_text(&requests, &answers, &answered),
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

/// The same decision for all of `requests`, without digests.
fn answers(
    args: &ApproveArgs,
    requests: &[ApprovalRecord],
    decision: Decision,
) -> Vec<ApprovalAnswer> {
    let answer = |request: &ApprovalRecord| ApprovalAnswer {
        approval_id: request.approval_id.to_string(),
        decision,
        input_sha256: None,
        comment: args.comment.clone(),
    };
    requests.iter().map(answer).collect()
}

async fn read_items(
    client: &Client,
    turn: TurnId,
    requests: &[ApprovalRecord],
) -> Result<Vec<ApprovalItem>, turnwire_client::Error> {
    let mut items = Vec::with_capacity(requests.len());
    for request in requests {
        items.push(client.approval(turn, request.approval_id).await?);
    }
    Ok(items)
}

/// Prints the requests with their whole inputs.
fn show(args: &ApproveArgs, items: &[ApprovalItem]) -> Result<()> {
    let is_terminal = io::stdout().is_terminal();
    for item in items {
        match args.json {
            true => {
                let line = json_line(&serde_json::to_vec(item)?, is_terminal);
                print(&String::from_utf8_lossy(&line));
            }
            false => print(&format!(
                "{}\n{}",
                item.approval.approval_id,
                item_text(item)
            )),
        }
    }
    Ok(())
}

/// The whole input of a request as text.
fn item_text(item: &ApprovalItem) -> String {
    let name = &item.approval.tool_name;
    match &item.input_json {
        Some(input) => approval_text(name, input, keyboard::columns()),
        None => format!(
            "the input of {} is no longer stored; it would not run\n",
            tool_name(name)
        ),
    }
}

/// Shows each request and asks for it. Returns the approvals; a request without a yes stays open.
fn ask_all(args: &ApproveArgs, items: &[ApprovalItem]) -> Result<Vec<ApprovalAnswer>> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        show(args, items)?;
        bail!(
            "not approved: nobody can be asked, because standard input or standard error is not a \
             terminal; to approve an input that you have seen, add --approval ID and \
             --input-sha256 HEX"
        );
    }
    let mut approved = Vec::new();
    for item in items {
        let Some(input) = &item.input_json else {
            eprint!("{}", item_text(item));
            continue;
        };
        if ask(item, input)? {
            approved.push(ApprovalAnswer {
                approval_id: item.approval.approval_id.to_string(),
                decision: Decision::Approve,
                input_sha256: Some(sha256_hex(input.as_bytes())),
                comment: args.comment.clone(),
            });
        }
    }
    ensure!(
        !approved.is_empty(),
        "not approved; to reject: turnwire approve {} --reject",
        args.turn
    );
    Ok(approved)
}

/// Shows the whole `input` and then asks, until the answer is clear; the end of the input is a no. Lines
/// that were typed before do not count.
fn ask(item: &ApprovalItem, input: &str) -> Result<bool> {
    let mut terminal = io::stderr().lock();
    let name = &item.approval.tool_name;
    terminal.write_all(approval_text(name, input, keyboard::columns()).as_bytes())?;
    keyboard::discard_typed();
    loop {
        let name = tool_name(name);
        write!(terminal, "allow {name} to run with this input? [y/n] ")?;
        terminal.flush()?;
        let mut line = String::new();
        if io::stdin().read_line(&mut line)? == 0 {
            writeln!(terminal)?;
            return Ok(false);
        }
        match parse_decision(&line) {
            Some(decision) => return Ok(decision == Decision::Approve),
            None => writeln!(terminal, "{NOT_A_DECISION}")?,
        }
    }
}

fn as_text(
    requests: &[ApprovalRecord],
    answers: &[ApprovalAnswer],
    answered: &ApprovalsAnswered,
) -> String {
    let line = |answer: &ApprovalAnswer| {
        let decision = match answer.decision {
            Decision::Approve => "approved",
            Decision::Reject => "rejected",
        };
        let id = &answer.approval_id;
        let mut named = requests.iter();
        let request = named.find(|request| request.approval_id.to_string() == *id);
        let name = request.map_or_else(String::new, |request| tool_name(&request.tool_name));
        format!("{decision} {id} {name}\n")
    };
    let last = match answered.next_turn_id {
        Some(next) => format!("turn {next} goes on\n"),
        None => format!("{} more to answer\n", answered.remaining),
    };
    answers.iter().map(line).chain([last]).collect()
}
