//! Each type's bytes, in both versions, as the page of the wire says them.

use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::stream::{TextDelta, ThinkingDelta};
use turnwire_event::body::turn::{CancelRequested, Partial, Versions};
use turnwire_event::code::{CallPurpose, Phase, ToolErrorClass, TurnKind};
use turnwire_event::{
    Actor, CallId, EpisodeId, Epoch, MessageId, Position, Render, Seq, SessionId, Sub, Timestamp,
    TurnId, Ulid,
};

use super::*;
use Version::{V04, V05};

const HEAD: &str = "\"timestamp\":\"1970-01-01T00:00:01.000Z\",\
                    \"response_id\":\"resp_00000000000000000000000002\"";

fn event(body: Body) -> Event {
    let persisted = body.kind().is_persisted();
    Event {
        id: Position {
            epoch: Epoch(1),
            seq: Seq(3),
            sub: Sub(u32::from(!persisted)),
        },
        session_id: SessionId(Ulid(1)),
        turn_id: Some(TurnId(Ulid(2))),
        actor: Actor::SYSTEM,
        timestamp: Timestamp::from_millis(1_000),
        trace: None,
        render: None,
        body,
    }
}

fn told(body: Body, version: Version) -> String {
    let mut out = Vec::new();
    let marks = project(&event(body), version, &mut out);
    let text = String::from_utf8(out).expect("text");
    let events = text.matches("event: ").count();
    assert_eq!(marks.len(), events, "a mark for each frame");
    text
}

/// The block of a persisted event, as the page says it is.
fn block(k: u8, event_type: &str, version: &str, payload: &str) -> String {
    format!(
        "id: evt_00010000000003-{k}\nevent: {event_type}\ndata: {{\"event_type\":\"{event_type}\",\
         \"version\":\"{version}\",{HEAD}{payload}}}\n\n"
    )
}

fn ended(status: TurnStatus, error: Option<TurnError>) -> Body {
    let usage = Usage {
        input_tokens: 5,
        output_tokens: 4,
        total_tokens: 9,
        reasoning_tokens: 2,
        cached_tokens: 1,
        cost_usd: 0.5,
    };
    Body::TurnCompleted(Completed {
        status,
        usage,
        error,
        reason: Some("server_restart".into()),
        partial: None,
    })
}

const USAGE: &str = ",\"input_tokens\":5,\"output_tokens\":4,\"total_tokens\":9,\
                     \"reasoning_tokens\":2,\"cached_tokens\":1";
const DONE: &str = "data: [DONE]\n\n";

fn stopped(code: CancelCode) -> Body {
    Body::TurnCancelled(Cancelled {
        reason: "because".into(),
        code,
        phase: Phase::Llm,
        partial: Partial {
            message_id: None,
            bytes: 0,
        },
        receipt: Vec::new(),
    })
}

fn thought(text: &str, after_text: bool) -> Body {
    Body::ThinkingDelta(ThinkingDelta {
        message_id: MessageId(Ulid(3)),
        content_block_index: 0,
        text: text.into(),
        signature: Some("c2VhbA==".into()),
        after_text,
    })
}

fn words(text: &str) -> Body {
    Body::TextDelta(TextDelta {
        message_id: MessageId(Ulid(3)),
        content_block_index: 0,
        text: text.into(),
    })
}

fn failed_tool(called: bool) -> Body {
    Body::ToolFailed(tool::Failed {
        tool_use_id: ToolUseId(Ulid(4)),
        tool_name: "clock".into(),
        tool_type: ToolType::SubAgent,
        error_class: ToolErrorClass::Internal,
        called,
    })
}

fn call(first: bool) -> Body {
    Body::LlmCallStarted(CallStarted {
        call_id: CallId(Ulid(5)),
        model: "m".into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        first,
    })
}

#[test]
fn s1_022_s1_023_a_turn_opens_with_its_name_and_its_episode() {
    let started = Body::TurnStarted(Started {
        user_message_id: MessageId(Ulid(3)),
        input: Vec::new(),
        kind: TurnKind::Chat,
        episode_id: EpisodeId(Ulid(9)),
        locale: "en".into(),
        wire_version: Some("0.5".into()),
        history_omitted: 0,
        versions: Versions::default(),
    });
    let episode = ",\"episode_id\":\"ep_00000000000000000000000009\"";
    let wanted = block(0, "response_id", "0.5", "") + &block(1, "episode", "0.5", episode);
    assert_eq!(told(started, V05), wanted);
}

#[test]
fn s1_016_d_08_the_first_call_of_a_turn_shows_that_it_thinks() {
    let wanted = block(0, "thinking", "0.5", ",\"role\":\"reasoning\"");
    assert_eq!(told(call(true), V05), wanted);
    assert_eq!(told(call(false), V05), "");
}

#[test]
fn c_10_reasoning_is_thinking_until_there_are_words() {
    let before = told(thought("hm", false), V05);
    assert!(before.contains("event: thinking\n"), "{before}");
    assert!(
        before.ends_with(",\"content\":\"hm\",\"role\":\"reasoning\"}\n\n"),
        "{before}"
    );
    let after = told(thought("hm", true), V05);
    assert!(after.contains("event: reasoning\n"), "{after}");
    assert!(
        after.ends_with(",\"type\":\"chunk\",\"chunk\":\"hm\"}\n\n"),
        "{after}"
    );
    assert_eq!(
        told(thought("", false), V05) + &told(thought("", true), V05),
        ""
    );
}

#[test]
fn s1_014_d_07_words_are_chunks() {
    let text = told(words("a\nb\u{2028}\0"), V05);
    assert!(
        text.starts_with("id: evt_00010000000003.000001-0\nevent: text\ndata: {"),
        "{text}"
    );
    assert!(
        text.ends_with(",\"type\":\"chunk\",\"chunk\":\"a\\nb\u{2028}\\u0000\"}\n\n"),
        "{text}"
    );
    assert_eq!(told(words(""), V05), "");
}

#[test]
fn s1_017_s1_018_s1_046_a_tool_has_one_frame_at_its_start_and_one_at_its_end() {
    let triple = ",\"tool_call\":{\"id\":\"tu_00000000000000000000000004\",\"name\":\"clock\",\
                  \"type\":\"sub_agent\"}";
    let called = Body::ToolCalled(tool::Called {
        tool_use_id: ToolUseId(Ulid(4)),
        tool_name: "clock".into(),
        tool_type: ToolType::SubAgent,
        input_summary: "secret".into(),
    });
    assert_eq!(told(called, V05), block(0, "tool_call", "0.5", triple));
    let completed = Body::ToolCompleted(tool::Completed {
        tool_use_id: ToolUseId(Ulid(4)),
        tool_name: "clock".into(),
        tool_type: ToolType::SubAgent,
        duration_ms: 1,
        result_summary: "secret".into(),
        result_sha256: "0".into(),
    });
    let end = block(0, "tool_completed", "0.5", triple);
    assert_eq!(told(completed, V05), end);
    assert_eq!(told(failed_tool(true), V05), end);
    assert_eq!(told(failed_tool(false), V05), "");
}

#[test]
fn s1_024_s1_027_a_turn_ends_with_its_cost_and_then_its_terminal() {
    for status in [TurnStatus::Ok, TurnStatus::Degraded, TurnStatus::Paused] {
        let wanted = block(0, "usage", "0.5", USAGE) + &block(1, "completed", "0.5", "") + DONE;
        assert_eq!(told(ended(status, None), V05), wanted);
    }
}

#[test]
fn s1_089_s1_093_a_code_carries_what_it_is_for_and_no_more() {
    let error = |code| TurnError {
        code,
        sub_agent_id: Some("offers".into()),
        enricher_id: Some("offer_feed".into()),
        reason: Some("upstream_timeout".into()),
    };
    for (code, new, old) in [
        (
            ErrorCode::InternalError,
            "INTERNAL_ERROR\"",
            "INTERNAL_ERROR\"",
        ),
        (
            ErrorCode::RateLimitError,
            "RATE_LIMIT_ERROR\"",
            "RATE_LIMIT_ERROR\"",
        ),
        (
            ErrorCode::SubAgentFailed,
            "SUB_AGENT_FAILED\",\"sub_agent_id\":\"offers\"",
            "INTERNAL_ERROR\"",
        ),
        (
            ErrorCode::CcsEnvelopeError,
            "CCS_ENVELOPE_ERROR\",\"enricher_id\":\"offer_feed\",\"reason\":\"upstream_timeout\"",
            "INTERNAL_ERROR\"",
        ),
        (
            ErrorCode::PartialFanOut,
            "PARTIAL_FAN_OUT\"",
            "INTERNAL_ERROR\"",
        ),
    ] {
        for (version, detail) in [(V05, new), (V04, old)] {
            let name = version.as_str();
            let payload = format!(",\"error\":{{\"code\":\"{detail}}},\"is_final\":true");
            let wanted = block(0, "usage", name, USAGE) + &block(1, "error", name, &payload) + DONE;
            assert_eq!(
                told(ended(TurnStatus::Failed, Some(error(code))), version),
                wanted
            );
        }
    }
}

#[test]
fn s1_100_a_failure_that_names_nothing_is_internal() {
    let text = told(ended(TurnStatus::Failed, None), V05);
    assert!(
        text.contains("{\"code\":\"INTERNAL_ERROR\"},\"is_final\":true}"),
        "{text}"
    );
}

#[test]
fn s1_091_a_reason_that_is_not_in_the_set_is_not_passed_on() {
    let error = TurnError {
        code: ErrorCode::CcsEnvelopeError,
        sub_agent_id: None,
        enricher_id: Some("offer_feed".into()),
        reason: Some("KeyError at /srv/app.py on db-7.internal".into()),
    };
    let text = told(ended(TurnStatus::Failed, Some(error)), V05);
    assert!(
        text.contains("\"reason\":\"upstream_unavailable\"}"),
        "{text}"
    );
    assert!(!text.contains("KeyError"), "{text}");
}

#[test]
fn s1_028_s1_090_s1_114_a_cancel_has_its_own_frame_alone() {
    for (code, name) in [
        (CancelCode::RequestCancelled, "REQUEST_CANCELLED"),
        (CancelCode::IdleTimeout, "IDLE_TIMEOUT"),
    ] {
        let payload = format!(",\"error\":{{\"code\":\"{name}\"}}");
        let wanted = block(0, "cancelled", "0.5", &payload) + DONE;
        assert_eq!(told(stopped(code), V05), wanted);
        // S1-137, D-22: in 0.4 it is an error.
        let wanted = block(0, "error", "0.4", &(payload + ",\"is_final\":true")) + DONE;
        assert_eq!(told(stopped(code), V04), wanted);
    }
}

#[test]
fn what_is_suppressed_or_of_no_turn_gives_nothing() {
    let mut out = Vec::new();
    let mut hidden = event(words("hi"));
    let policy = RenderPolicy::Suppress;
    hidden.render = Some(Render { policy });
    assert_eq!(project(&hidden, V05, &mut out), Marks::NONE);
    let mut lost = event(words("hi"));
    lost.turn_id = None;
    assert_eq!(project(&lost, V05, &mut out), Marks::NONE);
    let asked = CancelRequested {
        by: "user".into(),
        reason: "x".into(),
    };
    let asked = event(Body::TurnCancelRequested(asked));
    assert_eq!(project(&asked, V05, &mut out), Marks::NONE);
    assert_eq!(out, b"");
}

#[test]
fn law_2_after_a_cursor_only_the_rest_is_told_with_the_same_ids() {
    let end = event(ended(TurnStatus::Ok, None));
    let mut whole = Vec::new();
    let all = project(&end, V05, &mut whole);
    assert_eq!(
        all.iter().collect::<Vec<_>>(),
        [Mark::Usage, Mark::Completed]
    );
    let usage = block(0, "usage", "0.5", USAGE).len();
    for (cursor, rest, marks) in [
        ("evt_00010000000002", &whole[..], 2),
        ("evt_00010000000002.000007-0", &whole[..], 2),
        ("evt_00010000000003-0", &whole[usage..], 1),
        ("evt_00010000000003-1", b"", 0),
        ("evt_00010000000003-9", b"", 0),
        ("evt_00010000000003", b"", 0),
        ("evt_00010000000003.000001-0", b"", 0),
    ] {
        let cursor: Cursor = cursor.parse().expect("a cursor");
        let mut out = b"before".to_vec();
        let told = project_after(&end, V05, &cursor, &mut out);
        assert_eq!(&out[b"before".len()..], rest, "{cursor}");
        assert_eq!(told.len(), marks, "{cursor}");
    }
}
