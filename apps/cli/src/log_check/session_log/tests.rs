//! A sound log passes; each way of doctoring it is found and names the event.

use super::*;
use turnwire_event::body::{llm, session, tool, turn};
use turnwire_event::code::{
    CallPurpose, CancelCode, Phase, ToolErrorClass, ToolType, TurnKind, TurnStatus,
};
use turnwire_event::content::{content_json, sha256_hex};
use turnwire_event::{
    Actor, CallId, ContentBlock, EpisodeId, Epoch, Message, MessageId, MessageStatus, Role,
    StopReason, Sub, TokenUsage, ToolUseId, Ulid,
};

const SESSION: SessionId = SessionId(Ulid(1));
const TURN: TurnId = TurnId(Ulid(2));
const OTHER: TurnId = TurnId(Ulid(3));
const MESSAGE: MessageId = MessageId(Ulid(4));
const TOOL: ToolUseId = ToolUseId(Ulid(5));
const CALL: CallId = CallId(Ulid(6));

fn started() -> Body {
    Body::TurnStarted(turn::TurnStarted {
        relayed_to: None,
        answers: Vec::new(),
        resumes: None,
        user_message_id: MESSAGE,
        input: vec![ContentBlock::text("hi")],
        kind: TurnKind::Chat,
        origin: None,
        dm_type: None,
        episode_id: EpisodeId(Ulid(7)),
        locale: "en".into(),
        wire_version: None,
        history_omitted: 0,
        versions: turn::BoundVersions::default(),
    })
}

fn call_started() -> Body {
    Body::LlmCallStarted(llm::CallStarted {
        call_id: CALL,
        model: "m".into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        first: true,
    })
}

fn call_completed(content: &[ContentBlock]) -> Body {
    Body::LlmCallCompleted(llm::CallCompleted {
        call_id: CALL,
        message_id: MESSAGE,
        content_sha256: content_json(content).1,
        stop_reason: StopReason::EndTurn,
        usage: TokenUsage::default(),
    })
}

fn tool_called() -> Body {
    Body::ToolCalled(tool::ToolCalled {
        upstream_id: None,
        tool_use_id: TOOL,
        tool_name: "echo".into(),
        tool_type: ToolType::Function,
        input_summary: "{}".into(),
    })
}

fn tool_completed() -> Body {
    Body::ToolCompleted(tool::ToolCompleted {
        upstream_id: None,
        tool_use_id: TOOL,
        tool_name: "echo".into(),
        tool_type: ToolType::Function,
        duration_ms: 1,
        result_summary: "ok".into(),
        result_sha256: sha256_hex(b"\"ok\""),
    })
}

fn tool_failed(called: bool) -> Body {
    Body::ToolFailed(tool::ToolFailed {
        upstream_id: None,
        tool_use_id: TOOL,
        tool_name: "echo".into(),
        tool_type: ToolType::Function,
        error_class: ToolErrorClass::Cancelled,
        called,
    })
}

fn completed() -> Body {
    Body::TurnCompleted(turn::TurnCompleted {
        status: TurnStatus::Ok,
        usage: TokenUsage::default(),
        error: None,
        reason: None,
        partial: None,
        paused: None,
    })
}

fn cancel_requested() -> Body {
    Body::TurnCancelRequested(turn::CancelRequested::new("user", "user_cancel"))
}

fn cancelled() -> Body {
    Body::TurnCancelled(turn::TurnCancelled {
        reason: "user_cancel".into(),
        code: CancelCode::RequestCancelled,
        phase: Phase::Tool,
        partial: turn::PartialMessage {
            message_id: None,
            bytes: 0,
            kept_until: None,
        },
        receipt: Vec::new(),
    })
}

/// The events of a log that begins with `session.created`, numbered from 1.
fn log(bodies: &[(TurnId, Body)]) -> Vec<Event> {
    let created = Body::SessionCreated(session::SessionCreated {
        workspace_path: None,
        episode_id: EpisodeId(Ulid(7)),
    });
    let rest = bodies
        .iter()
        .map(|(turn, body)| (Some(*turn), body.clone()));
    std::iter::once((None, created))
        .chain(rest)
        .enumerate()
        .map(|(at, (turn_id, body))| Event {
            response_id: None,
            id: Position::persisted(Epoch(1), Seq(at as u64 + 1)),
            session_id: SESSION,
            turn_id,
            actor: Actor::SYSTEM,
            timestamp: Timestamp::from_millis(at as i64),
            trace: None,
            render: None,
            sub_agent_id: None,
            body,
        })
        .collect()
}

/// The turn of a plain answer with one tool.
fn sound() -> Vec<(TurnId, Body)> {
    [
        started(),
        call_started(),
        call_completed(&[ContentBlock::text("hello")]),
        tool_called(),
        tool_completed(),
        completed(),
    ]
    .into_iter()
    .map(|body| (TURN, body))
    .collect()
}

fn messages() -> Vec<Message> {
    let message = |id, role, content| Message {
        provider_state: turnwire_event::ProviderState::default(),
        id,
        session_id: SESSION,
        turn_id: TURN,
        role,
        status: MessageStatus::Complete,
        content,
        model: None,
        omitted_bytes: None,
        stop_reason: None,
        usage: None,
        created_at: Timestamp::from_millis(0),
        metadata: turnwire_event::JsonObject::default(),
    };
    let result = ContentBlock::ToolResult {
        tool_use_id: TOOL,
        content: "ok".into(),
        is_error: false,
    };
    vec![
        message(MESSAGE, Role::Assistant, vec![ContentBlock::text("hello")]),
        message(MessageId(Ulid(9)), Role::Tool, vec![result]),
    ]
}

/// Checks a log as a store would give it, hashes made from its bytes.
fn verify(events: &[Event]) -> LogVerdict {
    let mut link = ChainHash::seed(SESSION);
    let mut verifier = LogVerifier::new(
        SESSION,
        link,
        messages().into_iter().collect::<StoredContents>(),
    );
    for event in events {
        let bytes = Bytes::from(event.to_bytes());
        link = link.next(&bytes);
        verifier.check(&bytes, link);
    }
    verifier.finish()
}

fn found(events: &[Event]) -> Vec<String> {
    let violations = verify(events).violations;
    let text = |v: LogViolation| format!("{} {}", &v.event[v.event.len() - 2..], v.description);
    violations.into_iter().map(text).collect()
}

#[test]
fn valid_log_passes_and_is_counted() {
    let events = log(&sound());
    let verdict = verify(&events);
    assert_eq!(verdict.violations, []);
    assert_eq!((verdict.first, verdict.last), (1, Some(events[6].id)));
    assert_eq!(
        (verdict.turns, verdict.tools, verdict.contents),
        ((1, 0), 1, (2, 0))
    );
    let mut beside = sound();
    let Body::TurnCancelled(end) = cancelled() else {
        unreachable!("it is one")
    };
    let withdrawn = |phase| {
        let end = turn::TurnCancelled {
            phase,
            ..end.clone()
        };
        [started(), cancel_requested(), Body::TurnCancelled(end)].map(|body| (OTHER, body))
    };
    beside.splice(4..4, withdrawn(Phase::Queued));
    assert_eq!(found(&log(&beside)), [""; 0], "it waited, and never ran");
    beside.splice(4..7, withdrawn(Phase::Route));
    assert_eq!(found(&log(&beside)).len(), 1, "two turns in flight");
    let open = verify(&events[..4]);
    assert_eq!((open.violations, open.turns), (vec![], (0, 1)));
    let cancel = [
        started(),
        cancel_requested(),
        tool_failed(false),
        cancelled(),
    ];
    assert_eq!(found(&log(&cancel.map(|body| (TURN, body)))), [""; 0]);
}

#[test]
fn gap_and_foreign_event_are_violations() {
    let mut events = log(&sound());
    events.remove(3);
    let violations = found(&events);
    assert_eq!(violations[0], "05 expected number 4");
    let mut events = log(&sound());
    events[2].session_id = SessionId(Ulid(99));
    assert_eq!(
        found(&events),
        [format!("03 belongs to {}", SessionId(Ulid(99)))]
    );
    let mut events = log(&sound());
    events[2].timestamp = Timestamp::from_millis(-5);
    assert_eq!(
        found(&events),
        ["03 its time is before that of the event before"]
    );
    let mut events = log(&sound());
    events[6].id.sub = Sub(1);
    assert_eq!(verify(&events).violations.len(), 1);
}

#[test]
fn changed_byte_is_one_violation_at_its_event() {
    let events = log(&sound());
    let mut link = ChainHash::seed(SESSION);
    let mut verifier = LogVerifier::new(
        SESSION,
        link,
        messages().into_iter().collect::<StoredContents>(),
    );
    for (at, event) in events.iter().enumerate() {
        let mut bytes = event.to_bytes();
        link = link.next(&bytes);
        if at == 1 {
            let text = String::from_utf8(bytes).expect("text");
            bytes = text.replace("\"hi\"", "\"ho\"").into_bytes();
        }
        verifier.check(&bytes.into(), link);
    }
    let expected = LogViolation {
        event: events[1].id.to_string(),
        description: "does not match its hash".into(),
    };
    assert_eq!(verifier.finish().violations, [expected]);
    let mut verifier = LogVerifier::new(SESSION, ChainHash([0; 32]), StoredContents::default());
    let bytes = Bytes::from(events[0].to_bytes());
    verifier.check(&bytes, ChainHash::seed(SESSION).next(&bytes));
    assert_eq!(
        verifier.finish().violations.len(),
        1,
        "a chain of another session"
    );
}

// LAW-1
#[test]
fn every_turn_has_one_terminal_at_its_end() {
    let mut twice = sound();
    twice.push((TURN, completed()));
    let message = format!("08 a second terminal after turn.completed of turn {TURN}");
    assert_eq!(found(&log(&twice)), [message]);
    let mut after = sound();
    after.push((TURN, tool_called()));
    let message = format!("08 an event after turn.completed of turn {TURN}");
    assert_eq!(found(&log(&after)), [message]);
    let both = [(TURN, started()), (OTHER, started())];
    assert_eq!(found(&log(&both)).len(), 1, "two at once at the end");
    let both = [both[0].clone(), both[1].clone(), (OTHER, call_started())];
    assert_eq!(found(&log(&both)).len(), 2, "two at once, also at the end");
    let none = [(TURN, completed())];
    assert_eq!(
        found(&log(&none)),
        [format!("02 turn {TURN} has not started")]
    );
}

// LAW-6
#[test]
fn tools_end_once_and_before_the_terminal() {
    let of = |bodies: &[Body]| {
        let bodies: Vec<_> = bodies.iter().map(|body| (TURN, body.clone())).collect();
        found(&log(&bodies))
    };
    let open = of(&[started(), tool_called(), completed()]);
    assert_eq!(open, [format!("04 {TOOL} was called and has not ended")]);
    let twice = of(&[
        started(),
        tool_called(),
        tool_completed(),
        tool_failed(true),
        completed(),
    ]);
    assert_eq!(twice, [format!("05 {TOOL} ends twice")]);
    let orphan = of(&[started(), tool_completed(), completed()]);
    assert_eq!(
        orphan,
        [format!("03 {TOOL} ends without having been called")]
    );
    let denied = of(&[started(), tool_called(), tool_failed(false), completed()]);
    assert_eq!(
        denied,
        [format!(
            "04 {TOOL} was called, but its tool.failed says that it was not"
        )]
    );
    let call = of(&[started(), call_started(), completed()]);
    assert_eq!(call, [format!("04 model call {CALL} has not ended")]);
}

// LAW-8
#[test]
fn nothing_starts_after_a_cancel() {
    let of = |bodies: [Body; 4]| found(&log(&bodies.map(|body| (TURN, body))));
    let late = of([started(), cancel_requested(), call_started(), cancelled()]);
    assert_eq!(late[0], "04 llm.call_started after the cancel request");
    let ends = of([
        started(),
        cancel_requested(),
        tool_failed(false),
        completed(),
    ]);
    assert_eq!(ends, ["05 the turn completes after a cancel request"]);
    let unasked = of([started(), tool_called(), tool_completed(), cancelled()]);
    assert_eq!(
        unasked,
        ["05 the turn is cancelled without a cancel request"]
    );
}

#[test]
fn stored_contents_must_match_their_hashes() {
    let mut events = sound();
    events[2].1 = call_completed(&[ContentBlock::text("something else")]);
    assert_eq!(
        found(&log(&events)),
        ["04 its stored message does not match its hash"]
    );
    let mut verifier =
        LogVerifier::new(SESSION, ChainHash::seed(SESSION), StoredContents::default());
    let mut link = ChainHash::seed(SESSION);
    for event in log(&sound()) {
        let bytes = Bytes::from(event.to_bytes());
        link = link.next(&bytes);
        verifier.check(&bytes, link);
    }
    assert_eq!(
        verifier.finish().contents,
        (0, 2),
        "counted as not readable"
    );
}

#[test]
fn trimmed_log_may_begin_inside_a_turn() {
    let events = log(&sound());
    let link = ChainHash([9; 32]);
    let mut verifier = LogVerifier::new(
        SESSION,
        link,
        messages().into_iter().collect::<StoredContents>(),
    );
    let mut hash = link;
    for event in &events[4..] {
        let bytes = Bytes::from(event.to_bytes());
        hash = hash.next(&bytes);
        verifier.check(&bytes, hash);
    }
    let verdict = verifier.finish();
    assert_eq!((verdict.violations, verdict.first), (vec![], 5));
}
