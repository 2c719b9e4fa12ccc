//! Each fake provider is read by its provider's own client, in Python and in JavaScript: what was
//! scripted is what the client understands, and what goes wrong is what the client calls wrong.
//! Needs `node`, `npm` and python3 with `venv`; the clients are installed by exact version.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_testkit::environment;
use turnwire_testkit::provider::{
    BlockOrder, Dialect, ErrorForm, FakeProvider, FinishReason, LineEnding, MessagePart,
    ModelMessage, ProviderAnswer, ProviderError, TokenCounts,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Python,
    JavaScript,
}

use Language::{JavaScript, Python};

impl Language {
    fn command(self) -> Command {
        match self {
            Python => {
                let home = environment::python("clients");
                let mut command = Command::new(home.join("bin/python"));
                command.arg(environment::root().join("e2e/clients/read.py"));
                command
            }
            JavaScript => {
                let mut command = Command::new("node");
                command.current_dir(environment::javascript("clients"));
                command.arg("read.mjs");
                command
            }
        }
    }
}

/// What the client should make of an answer.
#[derive(Debug)]
enum Outcome {
    Whole,
    /// The whole message, with this end.
    Ends(&'static str),
    /// An error of this class, with this status.
    Fails(&'static str, Option<u16>),
}

use Outcome::{Ends, Fails, Whole};

/// A message with everything in it.
fn message() -> ModelMessage {
    let oslo = json!({"city": "Oslo", "days": [1, 2.5, null]});
    ModelMessage::new([
        MessagePart::thinking(["Hm, ", "let me see."], "c2lnbmF0dXJl"),
        MessagePart::Redacted {
            data: "c2VhbGVk".to_owned(),
        },
        MessagePart::text(["Grüße ", "aus 東京", " 🏕️."]),
        MessagePart::call("call_a", "weather", &json!({"city": "Köln"})).signed("cHJvb2Y="),
        MessagePart::call("call_b", "weather", &oslo),
    ])
    .id("answer_1")
    .usage(TokenCounts {
        input: 100,
        cached: 60,
        cache_write: 10,
        output: 50,
        reasoning: 20,
    })
}

/// The message in the words of the reading scripts.
fn understood(dialect: Dialect, stop: &str) -> Value {
    let mut koeln = json!(["call_a", "weather", {"city": "Köln"}]);
    let mut thinking = json!([["Hm, let me see.", "c2lnbmF0dXJl"]]);
    let mut sealed = json!(["c2VhbGVk"]);
    let mut cache_write = 10;
    match dialect {
        Dialect::Anthropic | Dialect::Responses => {}
        Dialect::Chat => (thinking, sealed) = (json!([]), json!([])),
        Dialect::Gemini => {
            koeln = json!(["call_a", "weather", {"city": "Köln"}, "cHJvb2Y="]);
            cache_write = 0;
        }
    }
    json!({
        "id": "answer_1",
        "text": "Grüße aus 東京 🏕️.",
        "thinking": thinking,
        "sealed": sealed,
        "calls": [koeln, ["call_b", "weather", {"city": "Oslo", "days": [1, 2.5, null]}]],
        "stop": stop,
        "usage": {
            "input": 100, "cached": 60, "cache_write": cache_write,
            "output": 50, "reasoning": 20,
        },
    })
}

fn stop_word(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "tool_use",
        Dialect::Chat => "tool_calls",
        Dialect::Responses => "completed",
        Dialect::Gemini => "STOP",
    }
}

/// Answers that are whole, however they come.
fn whole(dialect: Dialect, language: Language) -> Vec<(ProviderAnswer, Outcome)> {
    let answer = || ProviderAnswer::from(message());
    let unknown = || match (dialect, language) {
        // This one client refuses events that it does not know.
        (Dialect::Responses, JavaScript) => Fails("OpenAIError", None),
        (Dialect::Responses, Python) => Whole,
        (Dialect::Anthropic | Dialect::Chat | Dialect::Gemini, _) => Whole,
    };
    let mut cases = vec![
        (answer(), Whole),
        (answer().byte_by_byte(), Whole),
        (answer().with_unknown_fields(), Whole),
        (answer().line_end(LineEnding::Lf), Whole),
        (answer().line_end(LineEnding::CrLf), Whole),
        (answer().line_end(LineEnding::Cr), Whole),
        (message().order(BlockOrder::Interleaved).into(), Whole),
        (answer().frames_every(Duration::from_millis(2)), Whole),
        (answer().unknown_at(3), unknown()),
        (answer().huge_at(3, 1 << 20), unknown()),
    ];
    // Google's clients take a line that does not begin with `data: ` for an error.
    if dialect != Dialect::Gemini {
        cases.push((answer().with_comments(), Whole));
    }
    cases
}

/// Answers that end otherwise, or fail in a way that the client notices.
fn otherwise(dialect: Dialect, language: Language) -> Vec<(ProviderAnswer, Outcome)> {
    let answer = || ProviderAnswer::from(message());
    let length = match (dialect, language) {
        (Dialect::Anthropic, _) => Ends("max_tokens"),
        // With tools this helper takes a limit for a failure.
        (Dialect::Chat, Python) => Fails("LengthFinishReasonError", None),
        (Dialect::Chat, JavaScript) => Ends("length"),
        (Dialect::Responses, _) => Ends("incomplete"),
        (Dialect::Gemini, _) => Ends("MAX_TOKENS"),
    };
    let limited = match (dialect, language) {
        (Dialect::Anthropic | Dialect::Chat | Dialect::Responses, _) => "RateLimitError",
        (Dialect::Gemini, Python) => "ClientError",
        (Dialect::Gemini, JavaScript) => "ApiError",
    };
    let key = match (dialect, language) {
        (Dialect::Anthropic | Dialect::Chat | Dialect::Responses, _) => "AuthenticationError",
        (Dialect::Gemini, _) => limited,
    };
    let overloaded = match (dialect, language) {
        (Dialect::Anthropic, _) => ("OverloadedError", 529),
        (Dialect::Chat | Dialect::Responses, _) => ("InternalServerError", 503),
        (Dialect::Gemini, Python) => ("ServerError", 503),
        (Dialect::Gemini, JavaScript) => ("ApiError", 503),
    };
    let in_stream = match (dialect, language) {
        (Dialect::Anthropic, Python) => Fails("APIStatusError", Some(200)),
        (Dialect::Anthropic, JavaScript) | (Dialect::Chat, _) => Fails("APIError", None),
        (Dialect::Responses, _) => Fails("ErrorEvent", None),
        (Dialect::Gemini, Python) => Fails("ServerError", Some(503)),
        (Dialect::Gemini, JavaScript) => Fails("ApiError", Some(503)),
    };
    let cut = match (dialect, language) {
        (Dialect::Anthropic | Dialect::Gemini, Python) => "RemoteProtocolError",
        (Dialect::Chat | Dialect::Responses, Python) => "APIConnectionError",
        (Dialect::Anthropic, JavaScript) => "AnthropicError",
        (Dialect::Chat | Dialect::Responses, JavaScript) => "OpenAIError",
        (Dialect::Gemini, JavaScript) => "TypeError",
    };
    let malformed = match (dialect, language) {
        (Dialect::Anthropic | Dialect::Chat | Dialect::Responses, Python) => "JSONDecodeError",
        (Dialect::Gemini, Python) => "UnknownApiResponseError",
        (Dialect::Anthropic | Dialect::Chat | Dialect::Responses, JavaScript) => cut,
        (Dialect::Gemini, JavaScript) => "SyntaxError",
    };
    let mut cases = vec![
        (message().finish(FinishReason::Length).into(), length),
        (
            ProviderAnswer::rate_limited(Duration::from_millis(1500)),
            Fails(limited, Some(429)),
        ),
        (
            ProviderAnswer::refuse(ProviderError::Unauthorized),
            Fails(key, Some(401)),
        ),
        (
            ProviderAnswer::refuse(ProviderError::Overloaded),
            Fails(overloaded.0, Some(overloaded.1)),
        ),
        (answer().error_at(4, ProviderError::Overloaded), in_stream),
        (answer().cut_inside(5), Fails(cut, None)),
        (answer().malformed_at(4), Fails(malformed, None)),
    ];
    if dialect == Dialect::Responses {
        let failing = |form| answer().error_as(4, ProviderError::Overloaded, form);
        cases.push((failing(ErrorForm::Failed), Fails("ResponseFailed", None)));
        cases.push((failing(ErrorForm::Nested), Fails("APIError", None)));
    }
    cases
}

/// Plays all answers and compares what the client says of each.
async fn reads(dialect: Dialect, name: &str, language: Language) {
    let provider = FakeProvider::start().await;
    provider.require_key("a-key");
    let mut cases = whole(dialect, language);
    cases.extend(otherwise(dialect, language));
    for (answer, _) in &cases {
        provider.push(answer.clone());
    }
    let mut command = language.command();
    command.args([name, &provider.base_url(), &cases.len().to_string()]);
    let done = tokio::task::spawn_blocking(move || command.output());
    let done = done.await.expect("a thread").expect("the client starts");
    let output = environment::text(&done);
    let lines = String::from_utf8_lossy(&done.stdout);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect();
    assert_eq!(lines.len(), cases.len(), "{output}");
    for (at, ((answer, outcome), line)) in cases.iter().zip(lines).enumerate() {
        match outcome {
            Whole => assert_eq!(
                line,
                understood(dialect, stop_word(dialect)),
                "{at} {answer:?}"
            ),
            Ends(stop) => assert_eq!(line, understood(dialect, stop), "{at} {answer:?}"),
            Fails(class, status) => {
                let position = (&line["error"], &line["status"]);
                assert_eq!(
                    position,
                    (&json!(class), &json!(status)),
                    "{at} {line} {answer:?}"
                );
            }
        }
    }
    waits_are_told(dialect, language, &provider, &output);
    for call in provider.calls() {
        assert_eq!(call.refused, None, "{call:?}");
    }
}

/// The refusal by the limit says how long to wait, where its provider says it.
fn waits_are_told(dialect: Dialect, language: Language, provider: &FakeProvider, said: &str) {
    let spaced = |key: &str, value: &str| match language {
        Python => format!("\"{key}\": \"{value}\""),
        JavaScript => format!("\"{key}\":\"{value}\""),
    };
    let headers: &[(&str, &str)] = match dialect {
        Dialect::Anthropic => &[("retry_after", "2")],
        Dialect::Chat | Dialect::Responses => &[("retry_after", "2"), ("retry_after_ms", "1500")],
        Dialect::Gemini => &[],
    };
    for (key, value) in headers {
        assert!(said.contains(&spaced(key, value)), "{key}: {said}");
    }
    if dialect == Dialect::Gemini {
        assert!(
            said.contains("retryDelay") && said.contains("1.5s"),
            "{said}"
        );
    }
    assert_eq!(provider.unused_lines(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anthropic_python_client_reads_fake() {
    reads(Dialect::Anthropic, "anthropic", Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anthropic_javascript_client_reads_fake() {
    reads(Dialect::Anthropic, "anthropic", JavaScript).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_python_client_reads_fake_chat() {
    reads(Dialect::Chat, "chat", Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_javascript_client_reads_fake_chat() {
    reads(Dialect::Chat, "chat", JavaScript).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_python_client_reads_fake_responses() {
    reads(Dialect::Responses, "responses", Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_javascript_client_reads_fake_responses() {
    reads(Dialect::Responses, "responses", JavaScript).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn google_python_client_reads_fake() {
    reads(Dialect::Gemini, "gemini", Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn google_javascript_client_reads_fake() {
    reads(Dialect::Gemini, "gemini", JavaScript).await;
}
