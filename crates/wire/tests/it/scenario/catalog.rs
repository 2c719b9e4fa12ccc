//! The scenarios of the golden files, one function each, in the order of S3-052.

use serde_json::json;
use turnwire_event::body::bus::{HandlerWarning, SubscriberRegistered, SubscriberUnregistered};
use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::body::routing::PolicyReloaded;
use turnwire_event::code::{ErrorCode, LlmErrorClass, ToolErrorClass, TurnStatus};
use turnwire_event::fold::CloseCause;
use turnwire_event::{Actor, Body, Event, StopReason};

use super::{LogBuilder, dispatch, endings, faults};

/// Every scenario with its name.
pub(crate) fn all() -> Vec<(&'static str, Vec<Event>)> {
    vec![
        ("plain_text", plain_text()),
        ("thinking_with_signature", thinking_with_signature()),
        ("thinking_after_text", thinking_after_text()),
        ("one_tool", one_tool()),
        ("parallel_tools", parallel_tools()),
        ("tool_failure", tool_failure()),
        ("tool_refused", tool_refused()),
        ("model_error_before_message", model_error_before_message()),
        ("model_error_mid_message", model_error_mid_message()),
        ("cancel_in_route", cancel_in_route()),
        ("cancel_in_llm_with_open_tool_use", cancel_in_llm()),
        ("cancel_in_tool", cancel_in_tool()),
        ("cancel_at_the_seam", cancel_at_the_seam()),
        ("turn_after_cancel", turn_after_cancel()),
        ("sweep_after_restart", sweep_after_restart()),
        ("sweep_in_tool", endings::sweep_in_tool()),
        ("cancel_in_queue", endings::cancel_in_queue()),
        ("cancel_before_message", endings::cancel_before_message()),
        ("idle_timeout", endings::idle_timeout()),
        ("every_error_code", endings::every_error_code()),
        ("degraded_and_paused", endings::degraded_and_paused()),
        ("reference_turn", dispatch::reference_turn()),
        ("batched_statuses", dispatch::batched_statuses()),
        ("rendering_policies", dispatch::rendering_policies()),
        (
            "component_and_collections",
            dispatch::component_and_collections(),
        ),
        ("over_cap", dispatch::over_cap()),
        ("tool_servers", dispatch::tool_servers()),
        ("axis_1_alone", faults::axis_1_alone()),
        ("axis_1_timeout", faults::axis_1_timeout()),
        ("axis_2", faults::axis_2()),
        ("axis_2_terminal", faults::axis_2_terminal()),
        ("axis_3_mixed", faults::axis_3_mixed()),
        ("axis_3_no_success", faults::axis_3_no_success()),
        ("principal_mismatch", faults::principal_mismatch()),
        ("cancel_in_fan_out", faults::cancel_in_fan_out()),
        ("sweep_in_fan_out", faults::sweep_in_fan_out()),
        ("failure_acknowledged", faults::failure_acknowledged()),
        ("feedback_and_bus", feedback_and_bus()),
        ("policy_reloaded", policy_reloaded()),
        ("unicode_and_long_text", unicode_and_long_text()),
    ]
}

pub(super) fn say(log: &mut LogBuilder, pieces: &[&str]) {
    let call = log.call();
    log.message();
    for piece in pieces {
        log.text(0, piece);
    }
    log.complete(call, StopReason::EndTurn);
}

fn plain_text() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("hi");
    say(&mut log, &["Hello", ", ", "there", "."]);
    log.end(TurnStatus::Ok, None);
    log.events
}

fn thinking_with_signature() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("why?");
    let call = log.call();
    log.message();
    log.thinking(0, "They ask ", None);
    log.thinking(0, "for a reason.", None);
    log.thinking(0, "", Some("c2VhbA=="));
    log.text(1, "Because.");
    log.complete(call, StopReason::EndTurn);
    log.end(TurnStatus::Ok, None);
    log.events
}

fn thinking_after_text() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("are you sure?");
    let call = log.call();
    log.message();
    log.thinking(0, "Am I", None);
    log.thinking(0, "?", Some("c2VhbA=="));
    log.text(1, "");
    log.text(1, "Let me ");
    log.text(1, "check.");
    log.thinking(2, "It says ", None);
    log.thinking(2, "so here.", None);
    let look = log.tool_start(3, "look");
    log.tool_end(3, look, json!({}));
    log.complete(call, StopReason::ToolUse);
    log.called(look, "look", "{}");
    log.completed(look, "look", "so");
    let call = log.call();
    log.message();
    log.thinking(0, "Right.", None);
    log.text(1, "Yes.");
    log.complete(call, StopReason::EndTurn);
    log.end(TurnStatus::Ok, None);
    log.events
}

fn one_tool() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("what time is it?");
    let call = log.call();
    log.message();
    log.text(0, "Let me look.");
    let clock = log.tool_start(1, "clock");
    log.input(1, clock, "{\"zone\":");
    log.input(1, clock, "\"UTC\"}");
    log.tool_end(1, clock, json!({"zone": "UTC"}));
    log.complete(call, StopReason::ToolUse);
    log.called(clock, "clock", "{\"zone\":\"UTC\"}");
    log.completed(clock, "clock", "12:00");
    say(&mut log, &["It is ", "noon."]);
    log.end(TurnStatus::Ok, None);
    log.events
}

fn parallel_tools() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("both, please");
    let call = log.call();
    log.message();
    let clock = log.tool_start(0, "clock");
    let echo = log.tool_start(1, "echo");
    log.input(0, clock, "{}");
    log.input(1, echo, "{\"text\":");
    log.tool_end(0, clock, json!({}));
    log.input(1, echo, "\"hi\"}");
    log.tool_end(1, echo, json!({"text": "hi"}));
    log.complete(call, StopReason::ToolUse);
    log.called(clock, "clock", "{}");
    log.called(echo, "echo", "{\"text\":\"hi\"}");
    log.completed(echo, "echo", "hi");
    log.completed(clock, "clock", "12:00");
    say(&mut log, &["Done."]);
    log.end(TurnStatus::Ok, None);
    log.events
}

fn tool_failure() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("break it");
    let call = log.call();
    log.message();
    let broken = log.tool_start(0, "broken");
    log.tool_end(0, broken, json!({}));
    log.complete(call, StopReason::ToolUse);
    log.called(broken, "broken", "{}");
    log.failed(broken, "broken", ToolErrorClass::Internal);
    say(&mut log, &["It broke."]);
    log.end(TurnStatus::Ok, None);
    log.events
}

fn tool_refused() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("what time is it?");
    let call = log.call();
    log.message();
    let clock = log.tool_start(0, "clock");
    log.tool_end(0, clock, json!({"zone": 7}));
    let echo = log.tool_start(1, "echo");
    log.tool_end(1, echo, json!({"text": "hi"}));
    log.complete(call, StopReason::ToolUse);
    log.refused(clock, "clock");
    log.called(echo, "echo", "{\"text\":\"hi\"}");
    log.completed(echo, "echo", "hi");
    say(&mut log, &["Which zone?"]);
    log.end(TurnStatus::Ok, None);
    log.events
}

fn model_error_before_message() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("hi");
    let call = log.call();
    log.fail(call, LlmErrorClass::RateLimited);
    log.end(TurnStatus::Failed, Some(ErrorCode::RateLimitError));
    log.events
}

fn model_error_mid_message() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("hi");
    let call = log.call();
    log.message();
    log.text(0, "Well, ");
    log.text(0, "I was about to");
    log.fail(call, LlmErrorClass::Transport);
    log.end(TurnStatus::Failed, Some(ErrorCode::InternalError));
    log.events
}

fn cancel_in_route() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn_unrouted("never mind");
    log.cancel("user_cancel");
    log.events
}

fn cancel_in_llm() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("read the file");
    log.call();
    log.message();
    log.text(0, "I'll start by");
    let read = log.tool_start(1, "read_file");
    log.input(1, read, "{\"path\":\"/a");
    log.cancel("user_cancel");
    log.events
}

fn cancel_in_tool() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("sleep twice");
    let call = log.call();
    log.message();
    let one = log.tool_start(0, "sleep");
    log.tool_end(0, one, json!({"ms": 60_000}));
    let two = log.tool_start(1, "sleep");
    log.tool_end(1, two, json!({"ms": 90_000}));
    log.complete(call, StopReason::ToolUse);
    log.called(one, "sleep", "{\"ms\":60000}");
    log.called(two, "sleep", "{\"ms\":90000}");
    log.cancel("changed my mind");
    log.events
}

fn cancel_at_the_seam() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("touch x");
    let call = log.call();
    log.message();
    let touch = log.tool_start(0, "touch");
    log.tool_end(0, touch, json!({"path": "x"}));
    log.complete(call, StopReason::ToolUse);
    log.cancel("user_cancel");
    log.events
}

fn turn_after_cancel() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("a long story");
    log.call();
    log.message();
    log.text(0, "Once upon");
    log.cancel("user_cancel");
    log.turn("a short one");
    say(&mut log, &["The end."]);
    log.end(TurnStatus::Ok, None);
    log.events
}

fn sweep_after_restart() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("a long story");
    log.call();
    log.message();
    log.text(0, "Once upon ");
    log.text(0, "a time");
    log.sweep(&CloseCause::Failed {
        error: ErrorCode::InternalError.into(),
        reason: Some("server_restart".into()),
    });
    log.events
}

fn feedback_and_bus() -> Vec<Event> {
    let mut log = LogBuilder::new();
    let joined = SubscriberRegistered { count: 2 };
    log.emit(Actor::SYSTEM, Body::BusSubscriberRegistered(joined));
    log.turn("hi");
    say(&mut log, &["Hello."]);
    log.end(TurnStatus::Ok, None);
    let turn_id = log.events.last().expect("the terminal").turn_id;
    let feedback = FeedbackRecorded {
        message_id: None,
        turn_id,
        rating: "5".into(),
        comment: Some("quick".into()),
    };
    log.emit(Actor::USER, Body::FeedbackRecorded(feedback));
    let warning = HandlerWarning {
        subscription_name: "ws-7".into(),
        reason: "client_too_slow".into(),
        count: 1,
    };
    log.emit(Actor::SYSTEM, Body::BusHandlerWarning(warning));
    let left = SubscriberUnregistered { count: 2 };
    log.emit(Actor::SYSTEM, Body::BusSubscriberUnregistered(left));
    log.events
}

fn policy_reloaded() -> Vec<Event> {
    let reloaded = |to: &str, from: &str| {
        Body::RoutingPolicyReloaded(PolicyReloaded {
            routing_policy_version: to.into(),
            previous_version: Some(from.into()),
        })
    };
    let mut log = LogBuilder::new();
    log.turn("hi");
    let call = log.call();
    log.message();
    log.text(0, "Half ");
    log.emit(Actor::SYSTEM, reloaded("2026-11-16T10:00:00Z", "builtin-1"));
    log.text(0, "and half.");
    log.complete(call, StopReason::EndTurn);
    log.end(TurnStatus::Ok, None);
    let later = reloaded("2026-11-17T10:00:00Z", "2026-11-16T10:00:00Z");
    log.emit(Actor::SYSTEM, later);
    log.events
}

fn unicode_and_long_text() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("grüße \"alle\" \\ \u{2028} 👋🏽");
    let call = log.call();
    log.message();
    let odd = "a\u{0}b\u{1f}\t\r\n\u{7f}\u{2028}\u{2029}\u{feff}\u{202e}</script>";
    log.text(0, odd);
    log.text(0, "e\u{301} 漢字 👩‍👩‍👧 \u{10ffff}");
    log.text(0, &"long ".repeat(1_000));
    let echo = log.tool_start(1, "echo");
    log.input(1, echo, "{\"text\":\"\\u20");
    log.input(1, echo, "28\\\"é\"}");
    log.tool_end(1, echo, json!({"text": "\u{2028}\"é"}));
    log.complete(call, StopReason::ToolUse);
    log.called(echo, "echo", "{\"text\":\"\u{2028}\\\"é\"}");
    log.completed(echo, "echo", "\u{2028}\"é");
    say(&mut log, &["\u{1F980}"]);
    log.end(TurnStatus::Ok, None);
    log.events
}
