//! Parameters of operations, each said once.

use serde_json::{Value, json};
use turnwire_event::{
    CallId, Day, EventType, MessageId, Position, ResponseId, SessionId, ToolUseId, TurnId, TypeSet,
};

use super::schemas::{Schemas, Shape, sent};
use crate::pc3::cursor::FRAME_ID_PATTERN;
use crate::problem::Code;
use crate::rest::turn::{KEY_PATTERN, TurnName};

/// Where a parameter is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Header,
}

impl Place {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

/// A parameter.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) required: bool,
    pub(super) about: &'static str,
    pub(super) shape: Shape,
}

const fn path(name: &'static str, about: &'static str, shape: Shape) -> Parameter {
    Parameter {
        name,
        place: Place::Path,
        required: true,
        about,
        shape,
    }
}

const fn query(name: &'static str, about: &'static str, shape: Shape) -> Parameter {
    Parameter {
        name,
        place: Place::Query,
        required: false,
        about,
        shape,
    }
}

const fn header(name: &'static str, about: &'static str, shape: Shape) -> Parameter {
    Parameter {
        name,
        place: Place::Header,
        required: false,
        about,
        shape,
    }
}

const fn required(mut parameter: Parameter) -> Parameter {
    parameter.required = true;
    parameter
}

pub(super) const TENANT: Parameter = header(
    "X-Tenant-Id",
    "The tenant the request speaks for; the nil UUID if nothing is said.",
    |_| {
        json!({ "type": "string", "format": "uuid",
        "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$" })
    },
);
pub(super) const PRINCIPAL: Parameter = header(
    "X-Turnwire-Principal",
    "Whom in the tenant it speaks for; `local` if nothing is said.",
    |_| json!({ "type": "string", "pattern": "^[!-~]{1,128}$" }),
);
pub(super) const LANGUAGE: Parameter = header(
    "Accept-Language",
    "The language of the answer, if the body names none; the best tag counts.",
    |_| json!({ "type": "string" }),
);
pub(super) const IDEMPOTENCY_KEY: Parameter = header(
    "Idempotency-Key",
    "Makes the request safe to repeat: the same key and body give the same turn.",
    |_| json!({ "type": "string", "pattern": KEY_PATTERN }),
);
pub(super) const WIRE_VERSION: Parameter = header(
    "X-Wire-Version",
    "The version of the chat wire that the turn speaks; the server's setting if nothing is said.",
    |_| json!({ "type": "string", "enum": ["0.4", "0.5"] }),
);
pub(super) const LAST_EVENT_ID: Parameter = header(
    "Last-Event-ID",
    "The id of the last frame that was seen; the stream goes on after it.",
    |_| json!({ "type": "string", "pattern": frame_id_or_nothing() }),
);
/// An empty id is none: some clients send one before they have seen a frame.
fn frame_id_or_nothing() -> String {
    format!("^$|{FRAME_ID_PATTERN}")
}

pub(super) const LAST_EVENT_ID_QUERY: Parameter = query(
    "last_event_id",
    "The same as the header, for clients that cannot send it; the header wins.",
    |_| json!({ "type": "string", "pattern": frame_id_or_nothing() }),
);
pub(super) const SESSION: Parameter = path("id", "The session.", sent::<SessionId>);
pub(super) const TURN: Parameter = path(
    "id",
    "The turn, by its turn id or its response id.",
    sent::<TurnName>,
);
pub(super) const RESPONSE: Parameter = path("response_id", "The answer.", sent::<ResponseId>);
pub(super) const CODE: Parameter = path("code", "The code of a problem.", |_| {
    let names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    json!({ "type": "string", "enum": names })
});
pub(super) const LIST_LIMIT: Parameter =
    query("limit", "How many a page.", |s| limit(s.limits.list_page));
pub(super) const MESSAGES_LIMIT: Parameter = query("limit", "How many a page.", |s| {
    limit(s.limits.messages_page)
});
pub(super) const EVENTS_LIMIT: Parameter =
    query("limit", "How many a page.", |s| limit(s.limits.events_page));
pub(super) const BEFORE_SESSION: Parameter = before(sent::<SessionId>);
pub(super) const BEFORE_TURN: Parameter = before(sent::<TurnId>);
pub(super) const BEFORE_MESSAGE: Parameter = before(sent::<MessageId>);
pub(super) const BEFORE_TOOL_USE: Parameter = before(sent::<ToolUseId>);
pub(super) const BEFORE_CALL: Parameter = before(sent::<CallId>);
pub(super) const FROM: Parameter = query(
    "from",
    "The first day (UTC); 29 days before `to` if nothing is said.",
    sent::<Day>,
);
pub(super) const TO: Parameter = query(
    "to",
    "The last day (UTC), at most 365 days after `from`; today if nothing is said.",
    sent::<Day>,
);
pub(super) const SINCE: Parameter = query(
    "since",
    "Only events after this one; from the beginning if nothing is said.",
    sent::<Position>,
);
pub(super) const TYPES: Parameter = query(
    "types",
    "Only events of these types: names between commas.",
    types,
);
pub(super) const HASHES: Parameter = query(
    "hashes",
    "Whether the hashes of the chain come along.",
    |_| json!({ "type": "string", "enum": ["true", "false"], "default": "false" }),
);
pub(super) const WAIT: Parameter = query(
    "wait",
    "Whether to answer when the turn has ended, with how; 202 comes if that takes above 15 s.",
    |_| json!({ "type": "string", "enum": ["true", "false"], "default": "false" }),
);
pub(super) const ATTACH: Parameter = required(query(
    "attach",
    "The attach token that GET /sessions/{id} gave.",
    |_| json!({ "type": "string" }),
));
/// What makes a request a WebSocket handshake.
pub(super) const HANDSHAKE: [Parameter; 4] = [
    required(header(
        "Upgrade",
        "This path speaks WebSocket (RFC 6455, version 13).",
        |_| json!({ "type": "string", "const": "websocket" }),
    )),
    required(header(
        "Connection",
        "Among others, `Upgrade`.",
        |_| json!({ "type": "string", "const": "Upgrade" }),
    )),
    required(header(
        "Sec-WebSocket-Version",
        "The version of the protocol.",
        |_| json!({ "type": "string", "const": "13" }),
    )),
    required(header(
        "Sec-WebSocket-Key",
        "Sixteen random bytes in base64.",
        |_| json!({ "type": "string", "pattern": "^[A-Za-z0-9+/]{21}[AQgw]==$" }),
    )),
];

const fn before(shape: Shape) -> Parameter {
    query(
        "before",
        "Only those before this one: `next` of a page.",
        shape,
    )
}

fn limit((default, max): (usize, usize)) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": max, "default": default })
}

fn types(_: &mut Schemas) -> Value {
    let names: Vec<&str> = TypeSet::filterable().iter().map(EventType::name).collect();
    let one = names.join("|").replace('.', "\\.");
    json!({ "type": "string", "pattern": format!("^({one})(,({one}))*$"),
        "examples": ["turn.started,turn.completed"] })
}
