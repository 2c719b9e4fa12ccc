//! Turns with tools: each call is durable before the tool runs, and each tool ends once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use turnwire_event::code::{ErrorCode, ToolErrorClass, TurnStatus};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::TurnOutcome;
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{ContentBlock, MessageId, Role, ToolUseId, Ulid};
use turnwire_tool::ToolFailure;

use super::turn_harness::TurnHarness;
use crate::emitter::ambient;

fn result(message: u128, tool_use: u128, content: Value, is_error: bool) -> NewMessage {
    NewMessage {
        provider_state: turnwire_event::ProviderState::default(),
        id: MessageId(Ulid(message)),
        role: Role::Tool,
        content: vec![ContentBlock::ToolResult {
            tool_use_id: ToolUseId(Ulid(tool_use)),
            content,
            is_error,
        }],
        metadata: turnwire_event::JsonObject::default(),
        scope: MessageScope::Shared,
    }
}

/// The lines from the first `tool.called` to the next call.
fn work(lines: Vec<String>) -> Vec<String> {
    let from = lines.iter().position(|line| line.contains(" tool.called "));
    let tool_lines = lines.into_iter().skip(from.expect("a tool was called"));
    tool_lines
        .take_while(|line| !line.contains("llm.call_started"))
        .collect()
}

// S3-052
#[tokio::test(start_paused = true)]
async fn tool_runs_after_its_call_is_durable() {
    let harness = TurnHarness::script(
        "- steps: [{tool: {name: look, input: {at: moon}, fragments: 2}}, {text: done}]",
    );
    let recorder = Arc::clone(&harness.recorder);
    let provider = Arc::clone(&harness.provider);
    let notes = Arc::clone(&recorder);
    let harness = harness.tool("look", move |call| {
        let notes = Arc::clone(&notes);
        async move {
            notes.note(&format!("look acts on {}", call.input));
            sleep(Duration::from_millis(40)).await;
            Ok(json!({"seen": "cheese"}))
        }
    });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        recorder.types()[1..9],
        [
            "llm.call_started",
            "message.start",
            "tool.use_start",
            "tool.use_input_delta",
            "tool.use_input_delta",
            "tool.use_end",
            "message.complete",
            "llm.call_completed"
        ]
    );
    assert_eq!(
        recorder.lines()[6],
        r#"orchestrator tool.use_end {"message_id":"02","content_block_index":0,"tool_use_id":"tu_03","final_input":{"at":"moon"}}"#
    );
    let json = r#"{"seen":"cheese"}"#;
    let hash = sha256_hex(json.as_bytes());
    assert_eq!(
        work(recorder.lines()),
        [
            r#"tool:look tool.called {"tool_use_id":"tu_03","tool_name":"look","tool_type":"function","input_summary":"{\"at\":\"moon\"}"}"#.to_owned(),
            "committed 4".to_owned(),
            r#"look acts on {"at":"moon"}"#.to_owned(),
            format!(r#"tool:look tool.completed {{"tool_use_id":"tu_03","tool_name":"look","tool_type":"function","duration_ms":40,"result_summary":"{{\"seen\":\"cheese\"}}","result_sha256":"{hash}"}}"#),
        ]
    );
    let messages = recorder.messages();
    assert_eq!(messages, [result(4, 3, json!({"seen": "cheese"}), false)]);
    // The second call sees what was asked and what came of it.
    let requests = provider.requests.lock();
    let roles: Vec<Role> = requests[1]
        .messages
        .iter()
        .map(|messages| messages.role)
        .collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!((requests[0].call, requests[1].call), (1, 2));
    assert_eq!(requests[1].messages[2].content, messages[0].content);
}

#[tokio::test(start_paused = true)]
async fn parallel_tools_run_at_once() {
    let harness = TurnHarness::script(
        "- steps: [{text: both}, {tool: {name: slow}}, {tool: {name: quick}}, {text: done}]",
    );
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness
        .tool("slow", |_| async {
            sleep(Duration::from_millis(90)).await;
            Ok(json!("slow"))
        })
        .tool("quick", |_| async {
            sleep(Duration::from_millis(30)).await;
            Ok(json!("quick"))
        });
    let started = tokio::time::Instant::now();
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(started.elapsed().as_millis(), 90);
    let short: Vec<String> = work(recorder.lines())
        .iter()
        .map(|line| line.split(" {").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        short,
        [
            "tool:slow tool.called",
            "tool:quick tool.called",
            "committed 5",
            "tool:quick tool.completed",
            "tool:slow tool.completed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn failed_tool_fails_alone() {
    let mut harness = TurnHarness::script(
        "- steps: [{tool: {name: sad}}, {tool: {name: mad}}, {tool: {name: bad}}, \
         {tool: {name: late}}, {tool: {name: good}}, {text: done}]",
    );
    harness.options.tool_timeout = Duration::from_millis(500);
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness
        .tool("sad", |_| async {
            sleep(Duration::from_millis(10)).await;
            Err(ToolFailure::new(
                ToolErrorClass::EnvelopeError,
                "Not today.",
            ))
        })
        .tool("mad", |_| async {
            sleep(Duration::from_millis(20)).await;
            panic!("mad")
        })
        // Breaks before there is a future to poll.
        .tool("bad", |call| {
            assert!(call.input.is_null(), "bad");
            async { Ok(json!(0)) }
        })
        .tool("late", |_| std::future::pending())
        .tool("good", |_| async {
            sleep(Duration::from_millis(30)).await;
            Ok(json!("good"))
        });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let ends: Vec<_> = recorder
        .emissions()
        .into_iter()
        .filter_map(|emission| Some((emission.body, emission.message?.content.pop()?)))
        .map(|(body, said)| match (body, said) {
            (
                turnwire_event::Body::ToolFailed(failed),
                ContentBlock::ToolResult {
                    content,
                    is_error: true,
                    ..
                },
            ) => (failed.tool_name, Some(failed.error_class), content),
            (
                turnwire_event::Body::ToolCompleted(done),
                ContentBlock::ToolResult {
                    content,
                    is_error: false,
                    ..
                },
            ) => (done.tool_name, None, content),
            other => panic!("{other:?}"),
        })
        .collect();
    let broke = "The tool broke and gave no result.";
    let expected = [
        ("bad", Some(ToolErrorClass::Internal), broke),
        ("sad", Some(ToolErrorClass::EnvelopeError), "Not today."),
        ("mad", Some(ToolErrorClass::Internal), broke),
        ("good", None, "good"),
        (
            "late",
            Some(ToolErrorClass::Timeout),
            "The tool gave no result within 500 ms.",
        ),
    ];
    let expected = expected.map(|(name, class, told)| (name.to_owned(), class, json!(told)));
    assert_eq!(ends, expected);
}

#[tokio::test]
async fn unknown_tool_is_called_and_fails() {
    let harness = TurnHarness::script("- steps: [{tool: {name: 'fly me'}}, {text: done}]");
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness.tool("walk", |_| async { Ok(json!(1)) });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        work(recorder.lines()),
        [
            r#"tool:fly_me tool.called {"tool_use_id":"tu_03","tool_name":"fly me","tool_type":"function","input_summary":"{}"}"#,
            r#"tool:fly_me tool.failed {"tool_use_id":"tu_03","tool_name":"fly me","tool_type":"function","error_class":"invalid_input","called":false}"#,
        ]
    );
    let expected = json!("There is no such tool. There are: walk.");
    assert_eq!(recorder.messages(), [result(4, 3, expected, true)]);
}

#[tokio::test]
async fn result_over_the_limit_is_not_stored() {
    let mut harness = TurnHarness::script("- steps: [{tool: {name: much}}, {text: done}]");
    harness.options.result_bytes_max = 10;
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness.tool("much", |_| async { Ok(json!("123456789")) });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let expected = json!("The result was larger than 10 bytes.");
    assert_eq!(recorder.messages(), [result(4, 3, expected, true)]);
}

#[tokio::test]
async fn model_that_never_stops_reaches_the_call_limit() {
    let mut harness = TurnHarness::script("- steps: [{tool: {name: again}}]");
    harness.options.calls_max = 3;
    let provider = Arc::clone(&harness.provider);
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness.tool("again", |_| async { Ok(json!(1)) });
    assert_eq!(
        harness.run().await,
        TurnOutcome {
            cancelled: None,
            reason: Some("limit_calls".into()),
            status: TurnStatus::Failed,
            error: Some(ErrorCode::InternalError.into()),
        }
    );
    assert_eq!(provider.requests.lock().len(), 3);
    let types = recorder.types();
    let count = |kind: &str| types.iter().filter(|t| *t == kind).count();
    assert_eq!((count("tool.called"), count("tool.completed")), (3, 3));
}

// S1-041
#[tokio::test]
async fn tools_and_their_tasks_find_the_emitter() {
    let harness = TurnHarness::script("- steps: [{tool: {name: nest}}, {text: done}]");
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness.tool("nest", |call| async move {
        let mut tasks = tokio::task::JoinSet::new();
        ambient::spawn(&mut tasks, async { ambient::current() });
        let inner = tasks.join_next().await.expect("a task").expect("no panic");
        let own = ambient::current().expect("in a turn");
        let inner = inner.expect("in a turn");
        let same = Arc::ptr_eq(&own, &inner) && Arc::ptr_eq(&own, &call.emitter);
        Ok(json!(same))
    });
    assert!(
        ambient::current().is_none(),
        "outside of turns there is none"
    );
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(recorder.messages(), [result(4, 3, json!(true), false)]);
}
