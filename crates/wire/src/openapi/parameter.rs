//! The parameters of operations, each defined once.

use serde_json::{Value, json};
use turnwire_event::{
    CallId, Day, EventType, MessageId, Position, ResponseId, SessionId, ToolUseId, TurnId, TypeSet,
};

use super::schemas::{SchemaFn, Schemas, request_schema};
use crate::pc3::cursor::FRAME_ID_PATTERN;
use crate::problem::Code;
use crate::rest::turn::{KEY_PATTERN, TurnName};

/// The location of a parameter in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
}

impl ParameterLocation {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

/// A parameter of an operation.
pub(super) struct OperationParameter {
    pub(super) name: &'static str,
    pub(super) place: ParameterLocation,
    pub(super) required: bool,
    pub(super) about: &'static str,
    pub(super) shape: SchemaFn,
}

const fn path(name: &'static str, about: &'static str, shape: SchemaFn) -> OperationParameter {
    OperationParameter {
        name,
        place: ParameterLocation::Path,
        required: true,
        about,
        shape,
    }
}

const fn query(name: &'static str, about: &'static str, shape: SchemaFn) -> OperationParameter {
    OperationParameter {
        name,
        place: ParameterLocation::Query,
        required: false,
        about,
        shape,
    }
}

const fn header(name: &'static str, about: &'static str, shape: SchemaFn) -> OperationParameter {
    OperationParameter {
        name,
        place: ParameterLocation::Header,
        required: false,
        about,
        shape,
    }
}

const fn required(mut parameter: OperationParameter) -> OperationParameter {
    parameter.required = true;
    parameter
}

pub(super) const TENANT: OperationParameter = header(
    "X-Tenant-Id",
    "The tenant the request speaks for; the nil UUID if nothing is said.",
    |_| {
        json!({ "type": "string", "format": "uuid",
        "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$" })
    },
);
pub(super) const PRINCIPAL: OperationParameter = header(
    "X-Turnwire-Principal",
    "Whom in the tenant it speaks for; `local` if nothing is said.",
    |_| json!({ "type": "string", "pattern": "^[!-~]{1,128}$" }),
);
pub(super) const LANGUAGE: OperationParameter = header(
    "Accept-Language",
    "The language of the answer, if the body names none; the best tag counts.",
    |_| json!({ "type": "string" }),
);
pub(super) const IDEMPOTENCY_KEY: OperationParameter = header(
    "Idempotency-Key",
    "Makes the request safe to repeat: the same key and body give the same turn.",
    |_| json!({ "type": "string", "pattern": KEY_PATTERN }),
);
pub(super) const WIRE_VERSION: OperationParameter = header(
    "X-Wire-Version",
    "The version of the chat wire that the turn speaks; the server's setting if nothing is said.",
    |_| json!({ "type": "string", "enum": ["0.4", "0.5"] }),
);
pub(super) const LAST_EVENT_ID: OperationParameter = header(
    "Last-Event-ID",
    "The id of the last frame that was seen; the stream goes on after it.",
    |_| json!({ "type": "string", "pattern": frame_id_or_nothing() }),
);
/// An empty id is none: some clients send one before they have seen a frame.
fn frame_id_or_nothing() -> String {
    format!("^$|{FRAME_ID_PATTERN}")
}

pub(super) const LAST_EVENT_ID_QUERY: OperationParameter = query(
    "last_event_id",
    "The same as the header, for clients that cannot send it; the header wins.",
    |_| json!({ "type": "string", "pattern": frame_id_or_nothing() }),
);
pub(super) const SESSION: OperationParameter =
    path("id", "The session.", request_schema::<SessionId>);
pub(super) const TURN: OperationParameter = path(
    "id",
    "The turn, by its turn id or its response id.",
    request_schema::<TurnName>,
);
pub(super) const RESPONSE: OperationParameter =
    path("response_id", "The answer.", request_schema::<ResponseId>);
pub(super) const CODE: OperationParameter = path("code", "The code of a problem.", |_| {
    let names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    json!({ "type": "string", "enum": names })
});
pub(super) const LIST_LIMIT: OperationParameter =
    query("limit", "How many a page.", |s| limit(s.limits.list_page));
pub(super) const MESSAGES_LIMIT: OperationParameter = query("limit", "How many a page.", |s| {
    limit(s.limits.messages_page)
});
pub(super) const EVENTS_LIMIT: OperationParameter =
    query("limit", "How many a page.", |s| limit(s.limits.events_page));
pub(super) const BEFORE_SESSION: OperationParameter = before(request_schema::<SessionId>);
pub(super) const BEFORE_TURN: OperationParameter = before(request_schema::<TurnId>);
pub(super) const BEFORE_MESSAGE: OperationParameter = before(request_schema::<MessageId>);
pub(super) const BEFORE_TOOL_USE: OperationParameter = before(request_schema::<ToolUseId>);
pub(super) const BEFORE_CALL: OperationParameter = before(request_schema::<CallId>);
pub(super) const FROM: OperationParameter = query(
    "from",
    "The first day (UTC); 29 days before `to` if nothing is said.",
    request_schema::<Day>,
);
pub(super) const TO: OperationParameter = query(
    "to",
    "The last day (UTC), at most 365 days after `from`; today if nothing is said.",
    request_schema::<Day>,
);
pub(super) const SINCE: OperationParameter = query(
    "since",
    "Only events after this one; from the beginning if nothing is said.",
    request_schema::<Position>,
);
pub(super) const TYPES: OperationParameter = query(
    "types",
    "Only events of these types: names between commas.",
    types,
);
pub(super) const HASHES: OperationParameter = query(
    "hashes",
    "Whether the hashes of the chain come along.",
    |_| json!({ "type": "string", "enum": ["true", "false"], "default": "false" }),
);
pub(super) const WAIT: OperationParameter = query(
    "wait",
    "Whether to answer when the turn has ended, with how; 202 comes if that takes above 15 s.",
    |_| json!({ "type": "string", "enum": ["true", "false"], "default": "false" }),
);
pub(super) const ATTACH: OperationParameter = required(query(
    "attach",
    "The attach token that GET /sessions/{id} gave.",
    |_| json!({ "type": "string" }),
));
/// The headers of a WebSocket handshake.
pub(super) const HANDSHAKE: [OperationParameter; 4] = [
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

const fn before(shape: SchemaFn) -> OperationParameter {
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
    let alternatives = names.join("|").replace('.', "\\.");
    json!({ "type": "string", "pattern": format!("^({alternatives})(,({alternatives}))*$"),
        "examples": ["turn.started,turn.completed"] })
}
