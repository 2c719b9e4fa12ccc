//! An event as clients and the log see it: header and payload, in one fixed order of keys.
//!
//! Writing is done once, by the sequencer, around payload bytes that are already JSON; those
//! bytes are hashed, stored and sent. Reading is for the client, the sweep and tests.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::actor::Actor;
use crate::body::Body;
use crate::clock::Timestamp;
use crate::id::{ResponseId, SessionId, TurnId};
use crate::kind::EventType;
use crate::position::Position;

/// The W3C trace an event belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace {
    /// 32 hex digits.
    pub trace_id: String,
    /// 16 hex digits.
    pub span_id: String,
    /// 16 hex digits, of the caller.
    pub parent_span_id: Option<String>,
}

/// What the rendering policy decided for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RenderPolicy {
    /// As it is.
    Forward,
    /// As a sentence in the person's language.
    Transform,
    /// Not shown.
    Suppress,
    /// Together with others.
    Batch,
}

/// The stamp of the interceptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Render {
    /// What was decided.
    pub policy: RenderPolicy,
    /// Which of the turn's groups it was shown with, where several are shown together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// On the last of a group: the sentence for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// On the last of a group: the identifiers of all of them, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_ids: Vec<String>,
}

impl From<RenderPolicy> for Render {
    fn from(policy: RenderPolicy) -> Self {
        Self {
            policy,
            group: None,
            message: None,
            event_ids: Vec::new(),
        }
    }
}

/// What selection looks at: everything of an event but its payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// Where it stands.
    pub position: Position,
    /// Its type.
    pub kind: EventType,
    /// Its turn; none for what belongs to no turn.
    pub turn: Option<TurnId>,
    /// Who did it.
    pub actor: Actor,
    /// Whether the rendering policy hides it.
    pub suppressed: bool,
}

/// The fields of an envelope that are not the payload.
#[derive(Debug)]
pub struct Envelope<'a> {
    /// Where it stands.
    pub id: Position,
    /// Its type.
    pub kind: EventType,
    /// Its session.
    pub session_id: SessionId,
    /// Its turn; none for what belongs to no turn.
    pub turn_id: Option<TurnId>,
    /// Who did it.
    pub actor: &'a Actor,
    /// When, as text already printed.
    pub timestamp: &'a str,
    /// Its trace.
    pub trace: Option<&'a Trace>,
    /// The interceptor's stamp.
    pub render: Option<&'a Render>,
}

impl Envelope<'_> {
    /// Appends the whole event, with `payload` as it is.
    pub fn write(&self, payload: &[u8], out: &mut Vec<u8>) {
        out.reserve(payload.len() + 320);
        out.extend_from_slice(b"{\"id\":\"");
        self.id.write(out);
        put(
            out,
            &[
                "\",\"type\":\"",
                self.kind.name(),
                "\",\"session_id\":\"",
                SessionId::PREFIX,
            ],
        );
        out.extend_from_slice(&self.session_id.0.text());
        match self.turn_id {
            None => put(
                out,
                &["\",\"turn_id\":null,\"response_id\":null,\"actor\":\""],
            ),
            Some(turn) => {
                let text = turn.0.text();
                put(out, &["\",\"turn_id\":\""]);
                out.extend_from_slice(&text);
                put(out, &["\",\"response_id\":\"", ResponseId::PREFIX]);
                out.extend_from_slice(&text);
                put(out, &["\",\"actor\":\""]);
            }
        }
        // An actor's characters never need escaping; see `Actor::named`.
        use std::io::Write as _;
        write!(out, "{}", self.actor).expect("a Vec takes any bytes");
        put(
            out,
            &["\",\"timestamp\":\"", self.timestamp, "\",\"persisted\":"],
        );
        put(
            out,
            &[
                if self.kind.is_persisted() {
                    "true"
                } else {
                    "false"
                },
                ",\"trace\":",
            ],
        );
        match self.trace {
            None => put(out, &["null"]),
            Some(trace) => serde_json::to_writer(&mut *out, trace).expect("plain data"),
        }
        if let Some(render) = self.render {
            put(out, &[",\"render\":"]);
            serde_json::to_writer(&mut *out, render).expect("plain data");
        }
        put(out, &[",\"payload\":"]);
        out.extend_from_slice(payload);
        out.push(b'}');
    }
}

fn put(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

/// An event read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where it stands.
    pub id: Position,
    /// Its session.
    pub session_id: SessionId,
    /// Its turn.
    pub turn_id: Option<TurnId>,
    /// Who did it.
    pub actor: Actor,
    /// When.
    pub timestamp: Timestamp,
    /// Its trace.
    pub trace: Option<Trace>,
    /// The interceptor's stamp.
    pub render: Option<Render>,
    /// What it says.
    pub body: Body,
}

/// Why bytes could not be read as an event.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not the JSON of an event.
    #[error("not an event: {0}")]
    Json(#[from] serde_json::Error),
    /// A type that nothing emits yet.
    #[error("event type {0} has no payload yet")]
    Unknown(EventType),
}

#[derive(Deserialize)]
struct Raw<'a> {
    id: Position,
    #[serde(rename = "type")]
    kind: EventType,
    session_id: SessionId,
    turn_id: Option<TurnId>,
    actor: Actor,
    timestamp: Timestamp,
    #[serde(default)]
    trace: Option<Trace>,
    #[serde(default)]
    render: Option<Render>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl Event {
    /// Reads an event from the bytes that `Envelope::write` made.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let raw: Raw<'_> = serde_json::from_slice(bytes)?;
        let body = Body::read(raw.kind, raw.payload).ok_or(ReadError::Unknown(raw.kind))??;
        Ok(Self {
            id: raw.id,
            session_id: raw.session_id,
            turn_id: raw.turn_id,
            actor: raw.actor,
            timestamp: raw.timestamp,
            trace: raw.trace,
            render: raw.render,
            body,
        })
    }

    /// The bytes of the event, as the log has them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(256);
        self.body.write(&mut payload);
        let mut out = Vec::with_capacity(payload.len() + 320);
        Envelope {
            id: self.id,
            kind: self.body.kind(),
            session_id: self.session_id,
            turn_id: self.turn_id,
            actor: &self.actor,
            timestamp: &self.timestamp.to_string(),
            trace: self.trace.as_ref(),
            render: self.render.as_ref(),
        }
        .write(&payload, &mut out);
        out
    }

    /// What selection looks at.
    pub fn head(&self) -> Head {
        Head {
            position: self.id,
            kind: self.body.kind(),
            turn: self.turn_id,
            actor: self.actor.clone(),
            suppressed: self
                .render
                .as_ref()
                .is_some_and(|r| r.policy == RenderPolicy::Suppress),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::stream::TextDelta;
    use crate::id::{MessageId, Ulid};
    use crate::position::{Epoch, Seq, Sub};

    //
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
            actor: Actor::ORCHESTRATOR,
            timestamp: Timestamp::from_millis(1_000),
            trace: None,
            render: None,
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
