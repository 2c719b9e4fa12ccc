//! The built-in script with the trial tools: what the help suggests to new users works.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::port::{EventEmitter, TurnContext, TurnOutcome};
use turnwire_event::{Body, Clock, ContentBlock, Timestamp};
use turnwire_model::{ModelScript, ScriptedProvider};
use turnwire_tool::Toolbox;

use super::recording_emitter::RecordingEmitter;
use super::turn_harness::{CountingIdGenerator, FixedHistory, input};
use crate::options::AgentOptions;
use crate::standalone_agent::StandaloneAgent;

struct Epoch;

impl Clock for Epoch {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }
}

/// Runs one turn; returns its outcome, the text of its last message and the end of each tool.
async fn say(words: &str) -> (Option<TurnOutcome>, String, Vec<String>) {
    let id_generator = Arc::new(CountingIdGenerator::default());
    let agent = StandaloneAgent::new(
        AgentOptions::default(),
        Arc::new(ScriptedProvider::new(ModelScript::builtin())),
        Toolbox::with_trial_tools(Arc::new(Epoch), Arc::clone(&id_generator) as _),
        id_generator,
    );
    let recorder = Arc::new(RecordingEmitter::default());
    let mut input = input();
    input.content = vec![ContentBlock::text(words)];
    let turn = (agent.assemble(&input).work)(TurnContext {
        delegate: Arc::new(turnwire_event::port::NoChildTasks),
        child_tasks: Arc::new(turnwire_event::port::NoChildTasks),
        input,
        emitter: Arc::clone(&recorder) as Arc<dyn EventEmitter>,
        history: Arc::new(FixedHistory(Ok(Vec::new()))),
    });
    let outcome = timeout(Duration::from_secs(90), turn).await.ok();
    let mut text = String::new();
    let mut tools = Vec::new();
    for emission in recorder.emissions() {
        match emission.body {
            Body::MessageStart(_) => text.clear(),
            Body::TextDelta(delta) => text.push_str(&delta.text),
            Body::ToolCompleted(tool) if tool.tool_name != "burst.step" => {
                tools.push(format!("{} ok", tool.tool_name));
            }
            Body::ToolFailed(tool) => tools.push(format!("{} failed", tool.tool_name)),
            _ => {}
        }
    }
    (outcome, text, tools)
}

#[tokio::test(start_paused = true)]
async fn suggestions_for_new_users_work() {
    let ok = TurnOutcome {
        cancelled: None,
        reason: None,
        status: TurnStatus::Ok,
        error: None,
    };
    let cases: [(&str, &str, &[&str]); 11] = [
        ("Hello there", "Hello! I am a scripted model", &[]),
        ("please think", "I thought about it", &[]),
        (
            "What time is it?",
            "The clock says 1970-01-01T00:00:00.000Z.",
            &["clock ok"],
        ),
        (
            "two tools",
            "Both have answered. The last one said: slept 1500 ms.",
            &["echo ok", "sleep ok"],
        ),
        (
            "sleep",
            "Nobody stopped it. It says: slept 20000 ms.",
            &["sleep ok"],
        ),
        ("fail", "One of them failed.", &["fail failed", "echo ok"]),
        (
            "unknown tool",
            "I asked for a tool that does not exist. I was told: There is no such tool. There are: clock, ",
            &["teleport failed"],
        ),
        (
            "events 1000",
            r#"The tool answered: {"steps":1000,"events":2000}."#,
            &["burst ok"],
        ),
        ("a long story", "This takes about a minute.", &[]),
        (
            "fast",
            "These words come without any pause. These words",
            &[],
        ),
        (
            "gibberish",
            "I have no line for that. Try one of these:\n- hello:",
            &[],
        ),
    ];
    for (words, begins, tools) in cases {
        let (outcome, text, mut ended) = say(words).await;
        assert_eq!(outcome, Some(ok.clone()), "{words}");
        assert!(text.starts_with(begins), "{words}: {text}");
        ended.sort();
        let mut tools = tools.to_vec();
        tools.sort();
        assert_eq!(ended, tools, "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn demo_failures_fail() {
    let failed = |code: ErrorCode| {
        Some(TurnOutcome {
            cancelled: None,
            reason: None,
            status: TurnStatus::Failed,
            error: Some(code.into()),
        })
    };
    let (outcome, text, _) = say("error").await;
    assert_eq!(outcome, failed(ErrorCode::ModelUnavailable));
    assert_eq!(text, "In the middle of this sentence the line will");
    let (outcome, text, _) = say("rate limit").await;
    assert_eq!(outcome, failed(ErrorCode::RateLimitError));
    assert_eq!(text, "");
    let (outcome, text, _) = say("stall").await;
    assert_eq!(outcome, None, "it never ends");
    assert!(text.ends_with("Stop me."), "{text}");
}

#[tokio::test(start_paused = true)]
async fn every_help_line_matches_its_own_rule() {
    let (_, help, _) = say("help").await;
    let (_, fallback, _) = say("gibberish").await;
    assert!(fallback.ends_with(&help));
    let offers = help
        .lines()
        .skip(1)
        .filter_map(|line| line.strip_prefix("- ")?.split_once(':'));
    let words: Vec<&str> = offers.flat_map(|(words, _)| words.split(", ")).collect();
    assert_eq!(words.len(), 15, "{words:?}");
    for words in words {
        let (_, text, _) = say(words).await;
        assert!(!text.starts_with("I have no line"), "{words}");
    }
}
