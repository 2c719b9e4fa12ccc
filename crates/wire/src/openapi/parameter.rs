//! The parameters of operations, each defined once.

use serde_json::{Value, json};
use turnwire_event::{
    CallId, EventType, MessageId, Position, ResponseId, SessionId, ToolUseId, TurnId, TypeSet,
    UtcDay,
};

use super::schemas::{DocumentSchemas, SchemaFn, request_schema};
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
    "The tenant of the request; the nil UUID if absent.",
    |_| {
        json!({ "type": "string", "format": "uuid",
        "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$" })
    },
);
pub(super) const PRINCIPAL: OperationParameter = header(
    "X-Turnwire-Principal",
    "The principal within the tenant; `local` if absent.",
    |_| json!({ "type": "string", "pattern": "^[!-~]{1,128}$" }),
);
pub(super) const LANGUAGE: OperationParameter = header(
    "Accept-Language",
    "The language of the response, if the body names none; the tag with the highest weight is used.",
    |_| json!({ "type": "string" }),
);
pub(super) const IDEMPOTENCY_KEY: OperationParameter = header(
    "Idempotency-Key",
    "Makes the request safe to repeat: the same key and body return the same turn.",
    |_| json!({ "type": "string", "pattern": KEY_PATTERN }),
);
pub(super) const WIRE_VERSION: OperationParameter = header(
    "X-Wire-Version",
    "The version of the chat wire that the turn uses; the setting of the server if absent.",
    |_| json!({ "type": "string", "enum": ["0.4", "0.5"] }),
);
pub(super) const LAST_EVENT_ID: OperationParameter = header(
    "Last-Event-ID",
    "The id of the last frame that the client has; the stream continues after it.",
    |_| json!({ "type": "string", "pattern": frame_id_or_nothing() }),
);
/// An empty id counts as absent: some clients send one before their first frame.
fn frame_id_or_nothing() -> String {
    format!("^$|{FRAME_ID_PATTERN}")
}

pub(super) const LAST_EVENT_ID_QUERY: OperationParameter = query(
    "last_event_id",
    "The same as the header, for clients that cannot send it; the header takes precedence.",
    |_| json!({ "type": "string", "pattern": frame_id_or_nothing() }),
);
pub(super) const SESSION: OperationParameter =
    path("id", "The session.", request_schema::<SessionId>);
pub(super) const TURN: OperationParameter = path(
    "id",
    "The turn, by its turn id or its response id.",
    request_schema::<TurnName>,
);
pub(super) const RESPONSE: OperationParameter = path(
    "response_id",
    "The turn, by its response id.",
    request_schema::<ResponseId>,
);
pub(super) const CODE: OperationParameter = path("code", "The code of a problem.", |_| {
    let names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    json!({ "type": "string", "enum": names })
});
pub(super) const LIST_LIMIT: OperationParameter =
    query("limit", "The page size.", |s| limit(s.limits.list_page));
pub(super) const MESSAGES_LIMIT: OperationParameter =
    query("limit", "The page size.", |s| limit(s.limits.messages_page));
pub(super) const EVENTS_LIMIT: OperationParameter =
    query("limit", "The page size.", |s| limit(s.limits.events_page));
pub(super) const BEFORE_SESSION: OperationParameter = before(request_schema::<SessionId>);
pub(super) const BEFORE_TURN: OperationParameter = before(request_schema::<TurnId>);
pub(super) const BEFORE_MESSAGE: OperationParameter = before(request_schema::<MessageId>);
pub(super) const BEFORE_TOOL_USE: OperationParameter = before(request_schema::<ToolUseId>);
pub(super) const BEFORE_CALL: OperationParameter = before(request_schema::<CallId>);
pub(super) const FROM: OperationParameter = query(
    "from",
    "The first day (UTC); 29 days before `to` if absent.",
    request_schema::<UtcDay>,
);
pub(super) const TO: OperationParameter = query(
    "to",
    "The last day (UTC), at most 365 days after `from`; today if absent.",
    request_schema::<UtcDay>,
);
pub(super) const SINCE: OperationParameter = query(
    "since",
    "Only events after this one; from the beginning if absent.",
    request_schema::<Position>,
);
pub(super) const TYPES: OperationParameter = query(
    "types",
    "Only events of these types: names separated by commas.",
    types,
);
pub(super) const HASHES: OperationParameter = query(
    "hashes",
    "Whether to include the hashes of the chain.",
    |_| json!({ "type": "string", "enum": ["true", "false"], "default": "false" }),
);
pub(super) const WAIT: OperationParameter = query(
    "wait",
    "Whether to respond when the turn has ended; 202 if that takes more than 15 s.",
    |_| json!({ "type": "string", "enum": ["true", "false"], "default": "false" }),
);
pub(super) const ATTACH: OperationParameter = required(query(
    "attach",
    "The attach token from GET /sessions/{id}.",
    |_| json!({ "type": "string" }),
));
/// The headers of a WebSocket handshake.
pub(super) const HANDSHAKE: [OperationParameter; 4] = [
    required(header(
        "Upgrade",
        "This path is a WebSocket (RFC 6455, version 13).",
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
        "Only items before this one: `next` of the previous page.",
        shape,
    )
}

fn limit((default, max): (usize, usize)) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": max, "default": default })
}

fn types(_: &mut DocumentSchemas) -> Value {
    let names: Vec<&str> = TypeSet::filterable().iter().map(EventType::name).collect();
    let alternatives = names.join("|").replace('.', "\\.");
    json!({ "type": "string", "pattern": format!("^({alternatives})(,({alternatives}))*$"),
        "examples": ["turn.started,turn.completed"] })
}
