//! An event as clients and the log see it (R-01): header and payload, with a fixed order of keys.
//!
//! The sequencer serialises each event once, around payload bytes that are already JSON; those
//! bytes are hashed, stored and sent. Parsing is for the client, crash recovery and tests.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::actor::Actor;
use crate::body::Body;
use crate::clock::Timestamp;
use crate::id::{ResponseId, SessionId, TurnId, UpstreamId};
use crate::kind::EventType;
use crate::position::Position;
use crate::trace::TraceContext;

/// The decision of the rendering policy for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RenderPolicy {
    /// Show the event unchanged.
    Forward,
    /// Show the event as a sentence in the user's language.
    Transform,
    /// Hide the event from clients.
    Suppress,
    /// Show the event together with others, as one sentence.
    Batch,
}

/// The rendering decision that the interceptor stamps on an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenderDecision {
    pub policy: RenderPolicy,
    /// The number of the batch within the turn, for batched events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// On the last event of a batch: the sentence for the whole batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// On the last event of a batch: the status ids of the whole batch, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_ids: Vec<String>,
}

impl RenderDecision {
    /// True if the event is hidden from clients.
    pub fn is_suppressed(&self) -> bool {
        self.policy == RenderPolicy::Suppress
    }
}

impl From<RenderPolicy> for RenderDecision {
    fn from(policy: RenderPolicy) -> Self {
        Self {
            policy,
            group: None,
            message: None,
            event_ids: Vec::new(),
        }
    }
}

/// The header fields that filters look at: an event without its payload.
#[derive(Clone, Debug, PartialEq)]
pub struct EventHead {
    pub position: Position,
    pub kind: EventType,
    /// The turn; `None` for events outside of any turn.
    pub turn: Option<TurnId>,
    pub actor: Actor,
    /// True if the rendering policy hides the event.
    pub suppressed: bool,
}

/// The fields of an event around its payload.
#[derive(Debug)]
pub struct EventEnvelope<'a> {
    pub id: Position,
    pub kind: EventType,
    pub session_id: SessionId,
    /// The turn; `None` for events outside of any turn.
    pub turn_id: Option<TurnId>,
    /// The id that the turn's upstream gave; `None` for the turn's own.
    pub response_id: Option<&'a UpstreamId>,
    pub actor: &'a Actor,
    /// The timestamp, already formatted.
    pub timestamp: &'a str,
    pub trace: Option<&'a TraceContext>,
    pub render: Option<&'a RenderDecision>,
    /// The sub-agent whose tool is the actor.
    pub sub_agent_id: Option<&'a str>,
}

impl EventEnvelope<'_> {
    /// Appends the event to `out`, with `payload` unchanged.
    pub fn write(&self, payload: &[u8], out: &mut Vec<u8>) {
        out.reserve(payload.len() + 320);
        out.extend_from_slice(b"{\"id\":\"");
        self.id.write(out);
        put(out, &["\",\"type\":\"", self.kind.name()]);
        put(out, &["\",\"session_id\":\"", SessionId::PREFIX]);
        out.extend_from_slice(&self.session_id.0.text());
        match self.turn_id {
            None => put(out, &["\",\"turn_id\":null,\"response_id\":null"]),
            Some(turn) => {
                let text = turn.0.text();
                put(out, &["\",\"turn_id\":\""]);
                out.extend_from_slice(&text);
                put(out, &["\",\"response_id\":\""]);
                write_response_id(self.response_id, turn, out);
                out.push(b'"');
            }
        }
        put(out, &[",\"actor\":\""]);
        // An actor's characters never need escaping; see `Actor::named`.
        use std::io::Write as _;
        write!(out, "{}", self.actor).expect("a Vec takes any bytes");
        let persisted = match self.kind.is_persisted() {
            true => "true",
            false => "false",
        };
        put(out, &["\",\"timestamp\":\"", self.timestamp]);
        put(out, &["\",\"persisted\":", persisted, ",\"trace\":"]);
        match self.trace {
            None => put(out, &["null"]),
            Some(trace) => serde_json::to_writer(&mut *out, trace).expect("plain data"),
        }
        if let Some(render) = self.render {
            put(out, &[",\"render\":"]);
            serde_json::to_writer(&mut *out, render).expect("plain data");
        }
        if let Some(sub_agent_id) = self.sub_agent_id {
            put(out, &[",\"sub_agent_id\":"]);
            serde_json::to_writer(&mut *out, sub_agent_id).expect("plain data");
        }
        put(out, &[",\"payload\":"]);
        out.extend_from_slice(payload);
        out.push(b'}');
    }
}

/// Appends the response id of a turn: the one that its upstream gave, or its own. None needs escaping.
pub fn write_response_id(given: Option<&UpstreamId>, turn: TurnId, out: &mut Vec<u8>) {
    match given {
        Some(given) => out.extend_from_slice(given.as_str().as_bytes()),
        None => {
            out.extend_from_slice(ResponseId::PREFIX.as_bytes());
            out.extend_from_slice(&turn.0.text());
        }
    }
}

fn put(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

/// An event, parsed from its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: Position,
    pub session_id: SessionId,
    pub turn_id: Option<TurnId>,
    /// The id that the turn's upstream gave to its response; `None` for the turn's own.
    pub response_id: Option<UpstreamId>,
    pub actor: Actor,
    pub timestamp: Timestamp,
    pub trace: Option<TraceContext>,
    pub render: Option<RenderDecision>,
    /// The sub-agent whose tool is the actor; `None` for all other actors.
    pub sub_agent_id: Option<String>,
    pub body: Body,
}

/// Why bytes could not be parsed as an event.
#[derive(Debug, thiserror::Error)]
pub enum EventParseError {
    /// The bytes are not the JSON of an event.
    #[error("not an event: {0}")]
    Json(#[from] serde_json::Error),
    /// The event type has no payload struct.
    #[error("event type {0} has no payload yet")]
    Unknown(EventType),
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    id: Position,
    #[serde(rename = "type")]
    kind: EventType,
    session_id: SessionId,
    turn_id: Option<TurnId>,
    #[serde(borrow, default)]
    response_id: Option<Text<'a>>,
    actor: Actor,
    timestamp: Timestamp,
    #[serde(default)]
    trace: Option<TraceContext>,
    #[serde(default)]
    render: Option<RenderDecision>,
    #[serde(default)]
    sub_agent_id: Option<String>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// A text that is copied only if it has escapes; serde copies one that stands in an `Option`.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The response id of an event, if it is not the turn's own, which nearly all events have. An event
/// outside of any turn is of no response.
fn given_id(text: &str, turn: Option<TurnId>) -> Option<UpstreamId> {
    let own = text.strip_prefix(ResponseId::PREFIX).map(str::as_bytes);
    match turn {
        None => None,
        Some(turn) if own == Some(&turn.0.text()[..]) => None,
        Some(_) => text.parse().ok(),
    }
}

impl Event {
    /// Parses an event from the bytes that [`EventEnvelope::write`] produced.
    pub fn read(bytes: &[u8]) -> Result<Self, EventParseError> {
        let raw: RawEvent<'_> = serde_json::from_slice(bytes)?;
        let body =
            Body::read(raw.kind, raw.payload).ok_or(EventParseError::Unknown(raw.kind))??;
        Ok(Self {
            id: raw.id,
            session_id: raw.session_id,
            turn_id: raw.turn_id,
            response_id: (raw.response_id).and_then(|id| given_id(&id.0, raw.turn_id)),
            actor: raw.actor,
            timestamp: raw.timestamp,
            trace: raw.trace,
            render: raw.render,
            sub_agent_id: raw.sub_agent_id,
            body,
        })
    }

    /// The sub-agent that the event counts for: the actor itself, or the one whose tool it is.
    pub fn sub_agent(&self) -> Option<&str> {
        self.actor.sub_agent().or(self.sub_agent_id.as_deref())
    }

    /// Serialises the event to the bytes that the log stores.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(256);
        self.body.write(&mut payload);
        let mut out = Vec::with_capacity(payload.len() + 320);
        EventEnvelope {
            id: self.id,
            kind: self.body.kind(),
            session_id: self.session_id,
            turn_id: self.turn_id,
            response_id: self.response_id.as_ref(),
            actor: &self.actor,
            timestamp: &self.timestamp.to_string(),
            trace: self.trace.as_ref(),
            render: self.render.as_ref(),
            sub_agent_id: self.sub_agent_id.as_deref(),
        }
        .write(&payload, &mut out);
        out
    }

    /// The header that filters look at.
    pub fn head(&self) -> EventHead {
        EventHead {
            position: self.id,
            kind: self.body.kind(),
            turn: self.turn_id,
            actor: self.actor.clone(),
            suppressed: (self.render.as_ref()).is_some_and(RenderDecision::is_suppressed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::stream::TextDelta;
    use crate::id::{MessageId, Ulid};
    use crate::position::{Epoch, Seq, Sub};

    #[test]
    fn event_outside_of_any_turn_is_of_no_response() {
        let written = br#"{"id":"evt_00010000000003","type":"tool.use_start",
            "session_id":"sess_00000000000000000000000001","turn_id":null,"response_id":"resp_other",
            "actor":"orchestrator","timestamp":"2026-01-01T00:00:00.000Z","persisted":false,"trace":null,
            "payload":{"message_id":"00000000000000000000000003","content_block_index":0,
            "tool_use_id":"tu_00000000000000000000000004","tool_name":"clock"}}"#;
        let event = Event::read(written).expect("an event");
        assert_eq!((event.turn_id, &event.response_id), (None, &None));
        assert_eq!(Event::read(&event.to_bytes()).expect("own bytes"), event);
    }

    // R-01, D-32
    #[test]
    fn envelope_keys_are_ordered_and_read_back() {
        let event = Event {
            id: Position {
                epoch: Epoch(1),
                seq: Seq(3),
                sub: Sub(1),
            },
            session_id: SessionId(Ulid(1)),
            turn_id: Some(TurnId(Ulid(2))),
            response_id: None,
            actor: Actor::ORCHESTRATOR,
            timestamp: Timestamp::from_millis(1_000),
            trace: None,
            render: None,
            sub_agent_id: None,
            body: Body::TextDelta(TextDelta {
                message_id: MessageId(Ulid(3)),
                content_block_index: 0,
                text: "a\"\n\u{2028}é".into(),
            }),
        };
        let bytes = event.to_bytes();
        assert_eq!(Event::read(&bytes).expect("own bytes"), event);
        let text = String::from_utf8(bytes).expect("utf-8");
        assert_eq!(
            text,
            "{\"id\":\"evt_00010000000003.000001\",\"type\":\"text.delta\",\
             \"session_id\":\"sess_00000000000000000000000001\",\
             \"turn_id\":\"00000000000000000000000002\",\
             \"response_id\":\"resp_00000000000000000000000002\",\"actor\":\"orchestrator\",\
             \"timestamp\":\"1970-01-01T00:00:01.000Z\",\"persisted\":false,\"trace\":null,\
             \"payload\":{\"message_id\":\"00000000000000000000000003\",\
             \"content_block_index\":0,\"text\":\"a\\\"\\n\u{2028}é\"}}"
        );
    }
}
