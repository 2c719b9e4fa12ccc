//! Tools that need approval: requested and not called, then called or declined by the turn that
//! resumes.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_event::body::approval::ResolvedApproval;
use turnwire_event::code::{Decision, ToolType, TurnKind, TurnStatus};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::{BoxFuture, ResumeInput};
use turnwire_event::row::NewMessage;
use turnwire_event::{ApprovalId, Body, ContentBlock, Message, Role, ToolUseId, TurnId, Ulid};
use turnwire_tool::{Tool, ToolFailure, ToolInvocation};

use super::pack_harness::{PackHarness, results as tool_results_in, service};
use super::turn_harness::{FixedHistory, TurnHarness, message};

const PAUSED: u128 = 1;

/// The lines about tools and approvals, without payloads.
fn course(lines: &[String]) -> Vec<String> {
    let matching = lines.iter().filter(|line| {
        ["tool.called", "tool.completed", "tool.failed", "approval."]
            .iter()
            .any(|kind| line.contains(kind))
    });
    matching
        .map(|line| line.split(" {").next().unwrap_or_default().to_owned())
        .collect()
}

fn answer(n: u128, name: &str, decision: Decision, comment: Option<&str>) -> ResolvedApproval {
    ResolvedApproval {
        approval_id: ApprovalId(Ulid(n)),
        tool_use_id: ToolUseId(Ulid(n)),
        tool_name: name.into(),
        tool_type: ToolType::Function,
        decision,
        input_sha256: None,
        comment: comment.map(str::to_owned),
    }
}

fn tool_use(n: u128, name: &str, input: Value) -> ContentBlock {
    ContentBlock::ToolUse {
        id: ToolUseId(Ulid(n)),
        name: name.into(),
        input,
    }
}

/// The messages of a paused turn with these tool uses.
fn paused(uses: Vec<ContentBlock>) -> Vec<Message> {
    vec![
        message(PAUSED, Role::User, vec![ContentBlock::text("buy")]),
        message(PAUSED, Role::Assistant, uses),
        message(2, Role::User, Vec::new()),
    ]
}

fn going_on(yaml: &str, uses: Vec<ContentBlock>, answers: Vec<ResolvedApproval>) -> TurnHarness {
    let mut harness = TurnHarness::script(yaml);
    harness.past = FixedHistory(Ok(paused(uses)));
    harness.resumed = Some(ResumeInput {
        turn_id: TurnId(Ulid(PAUSED)),
        answers,
    });
    harness
}

fn results(said: &[NewMessage]) -> Vec<(u128, Value, bool)> {
    let blocks = said.iter().flat_map(|said| &said.content);
    let results = blocks.filter_map(|block| match block {
        ContentBlock::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => Some((tool_use_id.0.0, content.clone(), *is_error)),
        _ => None,
    });
    results.collect()
}

// R-40
#[tokio::test]
async fn tool_with_approval_is_requested_and_not_called() {
    let harness = TurnHarness::script(
        "- steps: [{tool: {name: look}}, {tool: {name: pay, input: {cents: 5}}}, \
         {tool: {name: pay, input: {cents: 7}}}, {text: never}]",
    );
    let recorder = Arc::clone(&harness.recorder);
    let provider = Arc::clone(&harness.provider);
    let harness = harness
        .tool("look", |_| async { Ok(json!("seen")) })
        .tool_with_approval("pay", |_| async { panic!("nobody said yes") });
    let outcome = harness.run().await;
    assert_eq!(
        (outcome.status, outcome.error, outcome.reason),
        (TurnStatus::Paused, None, None),
        "a turn that has shown nothing may pause"
    );
    let lines = recorder.lines();
    assert_eq!(
        course(&lines),
        [
            "tool:look tool.called",
            "tool:look tool.completed",
            "orchestrator approval.requested",
            "orchestrator approval.requested",
        ]
    );
    assert_eq!(
        lines.last().map(String::as_str),
        Some(
            r#"orchestrator approval.requested {"approval_id":"appr_08","tool_use_id":"tu_05","tool_name":"pay","input_summary":"{\"cents\":7}","input_bytes":11,"input_sha256":"b0a729a40729a5c21af69e73c03068a6e3583128d6cd2b4b74a5352e39e47a38"}"#
        )
    );
    assert_eq!(provider.requests.lock().len(), 1, "the model is not asked");
}

// R-40
#[tokio::test]
async fn invalid_input_is_declined_without_an_approval() {
    let harness = TurnHarness::script(
        "- steps: [{tool: {name: pay, input: {cents: much}}}, {text: 'sorry'}]",
    );
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness.tool_with_approval("pay", |_| async { panic!("nobody said yes") });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(course(&recorder.lines()), ["tool:pay tool.failed"]);
    let messages = recorder.messages();
    let [(3, Value::String(told), true)] = &results(&messages)[..] else {
        panic!("{messages:?}");
    };
    assert!(
        told.starts_with("The input does not fit at `/cents`"),
        "{told}"
    );
}

#[tokio::test]
async fn resumed_turn_runs_approved_and_declines_rejected() {
    let uses = vec![
        tool_use(11, "pay", json!({"cents": 5})),
        tool_use(12, "pay", json!({"cents": 7})),
        tool_use(13, "gone", json!({})),
        tool_use(14, "pay", json!({"cents": "x"})),
    ];
    let long = "n".repeat(600);
    let mut harness = going_on(
        "- steps: [{tool: {name: pay}}, {text: done}]",
        uses,
        vec![
            answer(11, "pay", Decision::Approve, None),
            answer(12, "pay", Decision::Reject, Some(&long)),
            answer(13, "gone", Decision::Approve, None),
            answer(14, "pay", Decision::Approve, None),
            answer(15, "pay", Decision::Approve, None),
        ],
    );
    harness.options.calls_max = 2;
    let recorder = Arc::clone(&harness.recorder);
    let provider = Arc::clone(&harness.provider);
    let paid = Arc::new(Mutex::new(Vec::new()));
    let book = Arc::clone(&paid);
    let harness = harness.tool_with_approval("pay", move |call| {
        book.lock().push(call.input["cents"].clone());
        async { Ok(json!("paid")) }
    });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(*paid.lock(), [json!(5)], "once, and only what was allowed");
    let lines = recorder.lines();
    let expected = [
        "tool:pay tool.called",
        "tool:pay tool.completed",
        "tool:pay tool.failed",
        "tool:gone tool.failed",
        "tool:pay tool.failed",
        "tool:pay tool.failed",
    ];
    assert_eq!(course(&lines), expected);
    let failed = lines.iter().filter(|line| line.contains("tool.failed"));
    let cancelled = r#""error_class":"cancelled","called":false"#;
    assert_eq!(failed.filter(|line| line.contains(cancelled)).count(), 1);
    let tool_results = results(&recorder.messages());
    let no = format!("not executed: the person said no, and: {}", "n".repeat(500));
    assert_eq!(tool_results[0], (11, json!("paid"), false));
    assert_eq!(tool_results[1], (12, json!(no), true));
    let missing_tool = "not executed: there is no such tool any more.";
    assert_eq!(tool_results[2], (13, json!(missing_tool), true));
    assert_eq!((tool_results[3].0, tool_results[3].2), (14, true));
    let lost = "not executed: what it was asked for is no longer kept. Ask again.";
    assert_eq!(tool_results[4], (15, json!(lost), true));
    // The model goes on with the second call of what the person asked for, and is shown a whole
    // conversation: nothing of it is empty.
    let requests = provider.requests.lock();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].call, 2);
    let roles: Vec<Role> = requests[0].messages.iter().map(|said| said.role).collect();
    assert_eq!(roles[..3], [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(roles.len(), 6, "four uses and four results: {roles:?}");
}

#[tokio::test]
async fn tool_runs_only_with_the_input_that_was_approved() {
    let digest = |input: Value| Some(sha256_hex(input.to_string().as_bytes()));
    let approved = |n, input| ResolvedApproval {
        input_sha256: digest(input),
        ..answer(n, "pay", Decision::Approve, None)
    };
    let harness = going_on(
        "- steps: [{text: done}]",
        vec![
            tool_use(11, "pay", json!({"cents": 5})),
            tool_use(12, "pay", json!({"cents": 7})),
        ],
        vec![
            approved(11, json!({"cents": 5})),
            approved(12, json!({"cents": 6})),
        ],
    );
    let recorder = Arc::clone(&harness.recorder);
    let paid = Arc::new(Mutex::new(Vec::new()));
    let book = Arc::clone(&paid);
    let harness = harness.tool_with_approval("pay", move |call| {
        book.lock().push(call.input["cents"].clone());
        async { Ok(json!("paid")) }
    });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(*paid.lock(), [json!(5)]);
    let other = "not executed: the input is not the one that was approved. Ask again.";
    assert_eq!(
        results(&recorder.messages()),
        [(11, json!("paid"), false), (12, json!(other), true)]
    );
}

#[tokio::test]
async fn summary_that_is_cut_says_so() {
    let harness = TurnHarness::script(&format!(
        "- steps: [{{tool: {{name: note, input: {{text: '{}; rm'}}}}}}]",
        "x".repeat(300)
    ));
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness.tool_with_approval("note", |_| async { panic!("nobody said yes") });
    assert_eq!(harness.run().await.status, TurnStatus::Paused);
    let requested = recorder.bodies().into_iter().find_map(|it| match it.1 {
        Body::ApprovalRequested(requested) => Some(requested),
        _ => None,
    });
    let requested = requested.expect("a request");
    let input = json!({"text": format!("{}; rm", "x".repeat(300))}).to_string();
    assert!(requested.input_truncated);
    assert_eq!(requested.input_bytes, Some(input.len() as u64));
    assert_eq!(requested.input_sha256, Some(sha256_hex(input.as_bytes())));
}

#[tokio::test]
async fn resumed_turn_may_pause_again() {
    let harness = going_on(
        "- when: {call: 2}\n  steps: [{tool: {name: pay, input: {cents: 9}}}]\n\
         - steps: [{text: unexpected}]",
        vec![tool_use(11, "pay", json!({}))],
        vec![answer(11, "pay", Decision::Approve, None)],
    );
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness.tool_with_approval("pay", |_| async { Ok(json!("paid")) });
    assert_eq!(harness.run().await.status, TurnStatus::Paused);
    assert_eq!(
        course(&recorder.lines()),
        [
            "tool:pay tool.called",
            "tool:pay tool.completed",
            "orchestrator approval.requested",
        ]
    );
}

/// A tool that needs approval.
struct ApprovalTool(Arc<dyn Tool>);

impl Tool for ApprovalTool {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn description(&self) -> &str {
        self.0.description()
    }

    fn input_schema(&self) -> Value {
        self.0.input_schema()
    }

    fn approval(&self) -> bool {
        true
    }

    fn run(&self, _: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        panic!("nobody said yes")
    }
}

#[tokio::test]
async fn sub_agent_tool_with_approval_is_declined() {
    let search = service("search", None, Ok(json!(1)));
    let harness = PackHarness::new(
        "- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}\n\
         - {when: {agent: orchestrator}, steps: [{text: composed}]}\n\
         - {when: {agent: shop}, steps: [{tool: {name: search, input: {q: milk}}}, {text: nothing}]}",
    )
    .tool(Arc::new(ApprovalTool(search)));
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let requests = harness.requests_of("shop");
    let tool_results = tool_results_in(requests.last().expect("the shop was asked"));
    let no = "not executed: a person has to allow this tool, and none can be asked here.";
    assert_eq!(tool_results, [(json!(no), true)]);
    assert!(!harness.everything().contains("approval.requested"));
    let lines = harness.recorder.lines();
    let ends: Vec<&str> = lines
        .iter()
        .filter(|line| line.starts_with("tool:search "))
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(ends, ["tool.failed"], "it is not even called");
}

// S3-081
#[tokio::test]
async fn worker_tool_with_approval_is_declined() {
    let mut harness = TurnHarness::script(
        "- {when: {call: 1}, steps: [{tool: {name: pay, input: {cents: 5}}}]}\n\
         - steps: [{text: without}]",
    );
    harness.kind = TurnKind::Worker;
    let (recorder, provider) = (Arc::clone(&harness.recorder), Arc::clone(&harness.provider));
    let harness = harness.tool_with_approval("pay", |_| async { panic!("nobody said yes") });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        course(&recorder.lines()),
        ["tool:pay tool.failed"],
        "it is not even called"
    );
    let failed = recorder.bodies().into_iter().find_map(|it| match it.1 {
        Body::ToolFailed(failed) => Some(failed.called),
        _ => None,
    });
    assert_eq!(failed, Some(false));
    assert_eq!(provider.requests.lock().len(), 2, "the model goes on");
}
