//! JSON Schemas of the frames of the session wire, in both directions.

use schemars::generate::Contract;
use serde_json::{Value, json};
use turnwire_event::body::turn::CANCEL_REASON_CHARS_MAX;
use turnwire_event::{EventType, FilterSpec, Position, TypeSet, schema};

use super::cancel::{CancelAck, CancelError};
use super::close::{ReconnectAdvice, SessionCloseReason};
use super::renew::{RenewAck, RenewError};
use super::server::{SnapshotFrame, SubscribeAck};
use super::subscribe::{SINCE_SESSIONS_MAX, SubscribeError};
use crate::frame_schema::FrameSchemas;

/// The schema of a frame that the server sends.
pub fn server_frame() -> Value {
    let mut frames = FrameSchemas::new("type", Contract::Serialize);
    frames.add::<SubscribeAck<'_>>("subscribe_ack", "The answer to an accepted subscribe.");
    frames.add::<SubscribeError>(
        "subscribe_error",
        "The answer to a rejected subscribe; the connection stays open.",
    );
    frames.add::<CancelAck>("cancel_ack", "The answer to a cancel of a known turn.");
    frames.add::<CancelError>("cancel_error", "The answer to a cancel without an effect.");
    frames.add::<RenewAck>("renew_ack", "The answer to an accepted renew.");
    frames.add::<RenewError>(
        "renew_error",
        "The answer to a renew without an effect; the connection keeps its identity.",
    );
    frames.add::<SnapshotFrame<'_>>("snapshot", "The state of the session at a position.");
    let event = event(&mut frames);
    frames.add_fields("event", "An event of the log.", &[("event", event)], &[]);
    let position = frames.of::<Position>();
    let positions = json!({
        "description": "How far the connection has been served in each session it carries.",
        "type": "object",
        "additionalProperties": position,
    });
    frames.add_fields(
        "ping",
        "A heartbeat; the client answers with a pong.",
        &[("nonce", text()), ("position", position)],
        &[("positions", positions)],
    );
    frames.add_fields("pong", "The answer to a ping.", &[("nonce", text())], &[]);
    frames.finish(
        "SessionServerFrame",
        "A frame of the session wire from the server.",
    )
}

/// The schema of a frame that a client sends.
pub fn client_frame() -> Value {
    let mut frames = FrameSchemas::new("type", Contract::Deserialize);
    let fields = subscribe(&mut frames);
    let subscribe = json!({ "properties": fields, "additionalProperties": false });
    let about = "Selects the events that the connection receives.";
    frames.add_object("subscribe", about, &subscribe);
    frames.add_fields(
        "cancel",
        "Requests the cancellation of a turn.",
        &[("turn_id", described("A turn id or a response id.", text()))],
        &[(
            "reason",
            json!({
                "description": format!(
                    "The reason, of which the log has at most the first {CANCEL_REASON_CHARS_MAX} characters."
                ),
                "type": ["string", "null"],
            }),
        )],
    );
    frames.add_fields(
        "renew",
        "Gives the connection a new token of the same principal.",
        &[(
            "token",
            described("A bearer token, as in the Authorization header.", text()),
        )],
        &[],
    );
    frames.add_fields(
        "ping",
        "A heartbeat; the server answers with a pong.",
        &[("nonce", text())],
        &[],
    );
    frames.add_fields(
        "pong",
        "The answer to a ping of the server.",
        &[("nonce", text())],
        &[],
    );
    frames.finish(
        "SessionClientFrame",
        "A frame of the session wire from a client.",
    )
}

/// The schema of the end of a connection: the close code with the reason, parsed.
pub fn close() -> Value {
    let reasons = SessionCloseReason::ALL.iter().map(|reason| {
        let advice = match reason.reconnect() {
            ReconnectAdvice::Resume => "Reconnect with the last id.",
            ReconnectAdvice::FixFirst => "Mend the frames before you reconnect.",
            ReconnectAdvice::Never => "Do not reconnect.",
        };
        json!({
            "description": advice,
            "type": "object",
            "required": ["code", "reason"],
            "properties": {
                "code": { "type": "integer", "const": reason.code() },
                "reason": {
                    "type": "object",
                    "required": ["code", "message"],
                    "properties": {
                        "code": { "type": "string", "const": reason.name() },
                        "message": { "type": "string", "const": reason.message() },
                    },
                },
            },
        })
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "SessionClose",
        "description": "The end of a connection of the session wire by the server: the close code, and the \
                        reason of the close frame, which is JSON.",
        "oneOf": reasons.collect::<Vec<_>>(),
    })
}

/// The schema of an event, whose types are added to the definitions.
fn event(frames: &mut FrameSchemas) -> Value {
    let events = schema::events(&mut frames.generator);
    let definitions = frames.generator.definitions_mut();
    let mut refs = Vec::new();
    for (_, name, schema) in events {
        refs.push(json!({ "$ref": format!("#/$defs/{name}") }));
        definitions.insert(name, schema);
    }
    let event = json!({ "description": "An event, by its `type`.", "oneOf": refs });
    definitions.insert("Event".to_owned(), event);
    json!({ "$ref": "#/$defs/Event" })
}

/// The members of a subscribe, all of which may be left out.
fn subscribe(frames: &mut FrameSchemas) -> Value {
    let position = frames.of::<Position>();
    let filter = frames.of::<FilterSpec>();
    let names: Vec<&str> = TypeSet::filterable().iter().map(EventType::name).collect();
    let definitions = frames.generator.definitions_mut();
    let types = &mut definitions["FilterSpec"]["properties"]["event_types"]["items"];
    *types = json!({ "type": "string", "enum": names });
    json!({
        "filter": {
            "description": "The events that the connection receives; null is `preset:full`.",
            "anyOf": [
                filter,
                { "type": "string", "enum": ["preset:chat", "preset:full"] },
                { "type": "null" },
            ],
        },
        "since": {
            "description": "The last event that the client has, or one for each session; null for new events only.",
            "anyOf": [
                position,
                {
                    "type": "object",
                    "additionalProperties": position,
                    "maxProperties": SINCE_SESSIONS_MAX,
                },
                { "type": "null" },
            ],
        },
        "snapshot": {
            "description": "True for a snapshot first; `since` is ignored then.",
            "type": "boolean",
            "default": false,
        },
    })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn described(about: &str, mut schema: Value) -> Value {
    schema["description"] = about.into();
    schema
}
