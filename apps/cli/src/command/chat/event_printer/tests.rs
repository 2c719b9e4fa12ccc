//! Events onto paper: what is output, in which order, and where.

mod aside;

use std::io::Write;
use std::sync::{Arc, Mutex};

use turnwire_event::body::stream::{MessageComplete, MessageStart, TextDelta, ThinkingDelta};
use turnwire_event::body::turn::TurnError;
use turnwire_event::body::{component, data, status, tool};
use turnwire_event::code::ToolErrorClass;
use turnwire_event::{
    Actor, Epoch, MessageStatus, Position, RenderPolicy, Role, Seq, SessionId, StopReason, Sub,
    Timestamp, TokenUsage, ToolUseId, TurnId, Ulid,
};

use super::*;
use crate::command::chat::screen::OutputStreams;
use crate::terminal::color::ColorMode;

const ID: MessageId = MessageId(Ulid(4));

/// What was written, to either place, in order; what is not the answer stands in brackets.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<String>>);

impl Paper {
    fn read(&self) -> String {
        self.0.lock().expect("one thread").clone()
    }
}

struct Pen(Paper, &'static str, &'static str);

impl Write for Pen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self(paper, open, close) = self;
        let text = String::from_utf8_lossy(bytes);
        let mut paper = paper.0.lock().expect("one thread");
        paper.push_str(&format!("{open}{text}{close}"));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn printer(form: OutputForm, terminal: bool) -> (EventPrinter, Paper) {
    let paper = Paper::default();
    let streams = OutputStreams {
        stdin: terminal,
        stdout: terminal,
        stderr: terminal,
        rewrites: terminal,
    };
    let out = Pen(paper.clone(), "", "");
    let err = Pen(paper.clone(), "[", "]");
    let screen = ChatScreen::new(out, err, streams, ColorMode::Plain);
    (EventPrinter::new(screen, form, " --flag".to_owned()), paper)
}

fn output(form: OutputForm, terminal: bool, bodies: Vec<Body>) -> String {
    let (mut printer, paper) = printer(form, terminal);
    for (body, sub) in bodies.into_iter().zip(1..) {
        printer.event(&event(sub, body)).expect("paper takes all");
    }
    paper.read()
}

fn event(sub: u32, body: Body) -> Event {
    Event {
        response_id: None,
        id: Position {
            epoch: Epoch(1),
            seq: Seq(3),
            sub: Sub(sub),
        },
        session_id: SessionId(Ulid(1)),
        turn_id: Some(TurnId(Ulid(2))),
        actor: Actor::ORCHESTRATOR,
        timestamp: Timestamp::from_millis(i64::from(sub)),
        trace: None,
        render: None,
        sub_agent_id: None,
        body,
    }
}

fn start() -> Body {
    Body::MessageStart(MessageStart {
        message_id: ID,
        role: Role::Assistant,
        model: "m".into(),
    })
}

fn text(block: u32, text: &str) -> Body {
    Body::TextDelta(TextDelta {
        message_id: ID,
        content_block_index: block,
        text: text.into(),
    })
}

fn thinking(text: &str) -> Body {
    Body::ThinkingDelta(ThinkingDelta {
        message_id: ID,
        content_block_index: 0,
        text: text.into(),
        signature: None,
        after_text: false,
    })
}

fn content() -> Vec<ContentBlock> {
    vec![
        ContentBlock::Thinking {
            text: "so so".into(),
            signature: None,
        },
        ContentBlock::text("one\u{1b}[1m"),
        ContentBlock::text("two"),
    ]
}

fn complete() -> Body {
    complete_with(content())
}

fn complete_with(final_content: Vec<ContentBlock>) -> Body {
    Body::MessageComplete(MessageComplete {
        message_id: ID,
        stop_reason: StopReason::EndTurn,
        final_content,
        usage: TokenUsage::default(),
    })
}

// S3-067
#[test]
fn final_content_completes_dropped_deltas() {
    let none = vec![start(), complete()];
    let last = vec![start(), text(1, "on"), complete()];
    let whole = vec![start(), text(1, "one\u{1b}[1m"), text(2, "two"), complete()];
    for bodies in [last, whole] {
        assert_eq!(output(OutputForm::Folded, false, bodies), "one\ntwo\n");
    }
    let folded = output(OutputForm::Folded, false, none);
    assert_eq!(folded, "[thinking… (2 words)\n]one\ntwo\n");
    // A delta is missing in the middle.
    let bodies = vec![start(), text(1, "o"), text(2, "two"), complete()];
    assert_eq!(
        output(OutputForm::Folded, false, bodies),
        format!("o\ntwo\n[{INCOMPLETE}\n]one\ntwo\n")
    );
}

#[test]
fn thinking_is_folded_into_its_word_count() {
    let bodies = || {
        vec![
            start(),
            thinking("so s"),
            thinking("o"),
            text(1, "yes"),
            complete_with(vec![ContentBlock::text("yes")]),
        ]
    };
    assert_eq!(
        output(OutputForm::Folded, false, bodies()),
        "[thinking… (2 words)\n]yes\n"
    );
    assert_eq!(
        output(OutputForm::Thinking, false, bodies()),
        "[so s][o][\n]yes\n"
    );
    let wipe = "[\r\u{1b}[K]";
    assert_eq!(
        output(OutputForm::Folded, true, bodies()),
        format!(
            "[thinking… (2 words)]{wipe}[thinking… (2 words)]{wipe}[thinking… (2 words)\n]yes\n"
        )
    );
}

#[test]
fn complete_message_is_printed_whole_and_sanitized() {
    let whole = "[thinking… (2 words)\n]one\ntwo\n";
    assert_eq!(
        output(OutputForm::Folded, false, vec![start(), complete()]),
        whole
    );
    let grown = vec![
        thinking("so so"),
        text(1, "one\u{1b}["),
        text(1, "1m"),
        text(2, "two"),
        complete(),
    ];
    assert_eq!(
        output(OutputForm::Folded, false, grown),
        whole,
        "and one that grew the same"
    );
}

#[test]
fn repeated_message_continues_where_it_stopped() {
    let (mut printer, paper) = printer(OutputForm::Folded, false);
    printer.event(&event(1, text(0, "on"))).expect("paper");
    let mut message = Message {
        provider_state: turnwire_event::ProviderState::default(),
        id: ID,
        session_id: SessionId(Ulid(1)),
        turn_id: TurnId(Ulid(2)),
        role: Role::Assistant,
        status: MessageStatus::InProgress,
        content: vec![ContentBlock::text("one")],
        model: None,
        omitted_bytes: None,
        stop_reason: None,
        usage: None,
        created_at: Timestamp::from_millis(1),
        metadata: turnwire_event::JsonObject::default(),
    };
    printer.catch_up(&message).expect("paper");
    printer.catch_up(&message).expect("paper");
    printer.event(&event(9, text(0, "!"))).expect("paper");
    message.content = vec![ContentBlock::text("o")];
    printer
        .catch_up(&message)
        .expect("a shorter one takes nothing back");
    assert_eq!(paper.read(), "one!");
}

#[test]
fn tool_is_one_line_with_its_duration() {
    let tool_use_id = ToolUseId(Ulid(5));
    let called = Body::ToolCalled(tool::ToolCalled {
        upstream_id: None,
        tool_use_id,
        tool_name: "clock\u{1b}[2J".into(),
        tool_type: ToolType::Function,
        input_summary: String::new(),
    });
    let failed = |called| {
        Body::ToolFailed(tool::ToolFailed {
            upstream_id: None,
            tool_use_id,
            tool_name: "clock\u{1b}[2J".into(),
            tool_type: ToolType::Function,
            error_class: ToolErrorClass::Timeout,
            called,
        })
    };
    let line = output(OutputForm::Folded, false, vec![called, failed(true)]);
    assert_eq!(line, "[clock took too long, 1 ms\n]");
    let line = output(OutputForm::Folded, false, vec![failed(false)]);
    assert_eq!(line, "[clock took too long\n]");
}

// G10
#[test]
fn json_is_escaped_only_for_a_terminal() {
    let raw = "{\"text\":\"a\u{9b}2J\u{202e}b\"}";
    for (terminal, output) in [
        (false, format!("{raw}\n")),
        (true, "{\"text\":\"a\\u009b2J\\u202eb\"}\n".to_owned()),
    ] {
        let (mut printer, paper) = printer(OutputForm::Json, terminal);
        printer.screen.raw(raw.as_bytes()).expect("paper");
        assert_eq!(paper.read(), output);
    }
}

fn doing(message: &str) -> Body {
    Body::StatusEmitted(status::StatusEmitted {
        event_id: "busy".into(),
        message: message.into(),
        invocation_id: None,
    })
}

fn tool(called: Option<ToolErrorClass>, tool_type: ToolType) -> Vec<Body> {
    let (tool_use_id, tool_name) = (ToolUseId(Ulid(5)), "search".to_owned());
    let begun = Body::ToolCalled(tool::ToolCalled {
        upstream_id: None,
        tool_use_id,
        tool_name: tool_name.clone(),
        tool_type,
        input_summary: String::new(),
    });
    let ended = match called {
        None => Body::ToolCompleted(tool::ToolCompleted {
            upstream_id: None,
            tool_use_id,
            tool_name,
            tool_type,
            duration_ms: 3,
            result_summary: String::new(),
            result_sha256: String::new(),
        }),
        Some(error_class) => Body::ToolFailed(tool::ToolFailed {
            upstream_id: None,
            tool_use_id,
            tool_name,
            tool_type,
            error_class,
            called: true,
        }),
    };
    vec![begun, ended]
}

//
#[test]
fn status_is_replaced_on_a_terminal_and_a_line_in_a_pipe() {
    let bodies = || {
        let mut bodies = vec![doing("Searching\u{1b}[2J…")];
        bodies.extend(tool(None, ToolType::Ccs));
        bodies.extend([doing("Sorting…"), text(0, "Two.")]);
        bodies.push(complete_with(vec![ContentBlock::text("Two.")]));
        bodies
    };
    let wipe = "[\r\u{1b}[K]";
    assert_eq!(
        output(OutputForm::Folded, true, bodies()),
        format!("[Searching…]{wipe}[Searching…]{wipe}[Searching…]{wipe}[Sorting…]{wipe}Two.\n"),
        "tools do not take its place"
    );
    assert_eq!(
        output(OutputForm::Folded, false, bodies()),
        "[Searching…\n][Sorting…\n]Two.\n"
    );
}

//
#[test]
fn batched_statuses_show_the_last_message() {
    let (mut printer, paper) = printer(OutputForm::Folded, false);
    let stamp = |message: Option<&str>, ids: usize| {
        Some(RenderDecision {
            policy: RenderPolicy::Batch,
            group: Some(1),
            message: message.map(str::to_owned),
            event_ids: vec!["busy".into(); ids],
        })
    };
    for (words, render) in [
        ("A…", stamp(None, 0)),
        ("B…", stamp(Some("A and B…"), 2)),
        ("C…", stamp(Some("C…"), 1)),
        ("D…", Some(RenderPolicy::Transform.into())),
    ] {
        let mut event = event(1, doing(words));
        event.render = render;
        printer.event(&event).expect("paper");
    }
    assert_eq!(paper.read(), "[A and B…\n][C…\n][D…\n]");
}

//
#[test]
fn components_are_lines_and_inner_failures_are_hidden() {
    let mut bodies = tool(Some(ToolErrorClass::EnvelopeError), ToolType::Ccs);
    bodies.push(Body::ErrorReported(TurnError::sub_agent("shop")));
    bodies.push(Body::DataLoaded(data::DataLoaded {
        id: "data_0".into(),
        data_type: "recipe_list".into(),
        key: data::CollectionKey { ids: Vec::new() },
        items: Vec::new(),
    }));
    bodies.push(Body::DataLoaded(data::DataLoaded {
        id: "data_1".into(),
        data_type: "offer_list".into(),
        key: data::CollectionKey { ids: Vec::new() },
        items: vec![
            serde_json::json!({"title": "Oat\u{1b}[2J milk"}),
            serde_json::json!({"name": "Granola"}),
        ],
    }));
    bodies.push(Body::ComponentRendered(component::ComponentRendered {
        component: serde_json::json!({"title": "Oat\nmilk"}),
        tool_call: component::RenderingToolCall {
            upstream_id: None,
            id: ToolUseId(Ulid(5)),
            name: "render_card".into(),
            tool_type: ToolType::Render,
        },
    }));
    assert_eq!(
        output(OutputForm::Folded, false, bodies),
        "[▪ offer_list: Oat milk, Granola\n][▪ card: Oat milk\n]"
    );
}

#[test]
fn status_ends_with_its_turn() {
    let (mut printer, paper) = printer(OutputForm::Folded, true);
    printer.event(&event(1, doing("Busy…"))).expect("paper");
    let end = TurnCompleted {
        status: turnwire_event::code::TurnStatus::Ok,
        usage: TokenUsage::default(),
        error: None,
        reason: None,
        partial: None,
        paused: None,
    };
    printer.completed(&end).expect("paper");
    assert_eq!(paper.read(), "[Busy…][\r\u{1b}[K]");
}
