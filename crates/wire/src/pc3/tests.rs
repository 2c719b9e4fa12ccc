//! Test support for this wire: events of one turn, and the blocks they are projected to.

use turnwire_event::body::turn::{PartialMessage, TurnCancelled, TurnCompleted, TurnError};
use turnwire_event::code::{CancelCode, Phase, TurnStatus};
use turnwire_event::{
    Actor, Body, Epoch, Event, Position, Seq, SessionId, Sub, Timestamp, TokenUsage, TurnId, Ulid,
};

use super::project::project;
use super::version::WireVersion;

const HEAD: &str = "\"timestamp\":\"1970-01-01T00:00:01.000Z\",\
                    \"response_id\":\"resp_00000000000000000000000002\"";

pub(super) fn event(body: Body) -> Event {
    let persisted = body.kind().is_persisted();
    Event {
        response_id: None,
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
        sub_agent_id: None,
        body,
    }
}

pub(super) fn projected(body: Body, version: WireVersion) -> String {
    let mut out = Vec::new();
    let kinds = project(&event(body), version, &mut out);
    let text = String::from_utf8(out).expect("text");
    let events = text.matches("event: ").count();
    assert_eq!(kinds.len(), events, "one kind for each frame");
    text
}

/// The expected block of a persisted event.
pub(super) fn block(index: u8, event_type: &str, version: &str, payload: &str) -> String {
    format!(
        "id: evt_00010000000003-{index}-0001\nevent: {event_type}\ndata: {{\"event_type\":\"{event_type}\",\
         \"version\":\"{version}\",{HEAD}{payload}}}\n\n"
    )
}

pub(super) fn turn_completed(status: TurnStatus, error: Option<TurnError>) -> Body {
    let usage = TokenUsage {
        input_tokens: 5,
        output_tokens: 4,
        total_tokens: 9,
        reasoning_tokens: 2,
        cached_tokens: 1,
        cost_usd: 0.5,
        estimated: false,
    };
    Body::TurnCompleted(TurnCompleted {
        status,
        usage,
        error,
        reason: Some("server_restart".into()),
        partial: None,
        paused: None,
    })
}

pub(super) const USAGE: &str = ",\"input_tokens\":5,\"output_tokens\":4,\"total_tokens\":9,\
                     \"reasoning_tokens\":2,\"cached_tokens\":1";
pub(super) const DONE: &str = "data: [DONE]\n\n";

pub(super) fn turn_cancelled(code: CancelCode) -> Body {
    Body::TurnCancelled(TurnCancelled {
        reason: "because".into(),
        code,
        phase: Phase::Llm,
        partial: PartialMessage {
            message_id: None,
            bytes: 0,
            kept_until: None,
        },
        receipt: Vec::new(),
    })
}
