//! The parameters of operations, and those that several operations share.

use serde_json::{Value, json};

use super::schemas::{DocumentSchemas, SchemaFn};
use crate::rest::turn::KEY_PATTERN;

/// A parameter of an operation.
pub(super) struct OperationParameter {
    pub(super) name: &'static str,
    /// The location: `path`, `query` or `header`.
    pub(super) place: &'static str,
    pub(super) is_required: bool,
    pub(super) about: &'static str,
    pub(super) shape: SchemaFn,
}

impl OperationParameter {
    pub(super) const fn path(name: &'static str, about: &'static str, shape: SchemaFn) -> Self {
        Self {
            name,
            place: "path",
            is_required: true,
            about,
            shape,
        }
    }

    pub(super) const fn query(name: &'static str, about: &'static str, shape: SchemaFn) -> Self {
        Self {
            place: "query",
            is_required: false,
            ..Self::path(name, about, shape)
        }
    }

    pub(super) const fn header(name: &'static str, about: &'static str, shape: SchemaFn) -> Self {
        Self {
            place: "header",
            ..Self::query(name, about, shape)
        }
    }

    pub(super) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}

pub(super) const TENANT: OperationParameter = OperationParameter::header(
    "X-Tenant-Id",
    "The tenant of the request; the nil UUID if absent.",
    |_| {
        json!({ "type": "string", "format": "uuid",
        "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$" })
    },
);
pub(super) const PRINCIPAL: OperationParameter = OperationParameter::header(
    "X-Turnwire-Principal",
    "The principal within the tenant; `local` if absent.",
    |_| json!({ "type": "string", "pattern": "^[!-~]{1,128}$" }),
);
pub(super) const LANGUAGE: OperationParameter = OperationParameter::header(
    "Accept-Language",
    "The language of the response, if the body names none; the tag with the highest weight is used.",
    string,
);
pub(super) const IDEMPOTENCY_KEY: OperationParameter = OperationParameter::header(
    "Idempotency-Key",
    "Makes the request safe to repeat: the same key and body return the same turn.",
    |_| json!({ "type": "string", "pattern": KEY_PATTERN }),
);
pub(super) const WIRE_VERSION: OperationParameter = OperationParameter::header(
    "X-Wire-Version",
    "The version of the chat wire that the turn uses; the setting of the server if absent.",
    |_| json!({ "type": "string", "enum": ["0.4", "0.5"] }),
);
pub(super) const WAIT: OperationParameter = OperationParameter::query(
    "wait",
    "Whether to respond when the turn has ended; 202 if that takes more than 15 s.",
    flag,
);

/// The schema of a principal, or `*` for all.
pub(super) fn principal_or_all(_: &mut DocumentSchemas) -> Value {
    json!({ "type": "string", "pattern": "^[!-~]{1,128}$" })
}

/// The schema of a principal.
pub(super) fn principal(_: &mut DocumentSchemas) -> Value {
    json!({ "type": "string", "pattern": "^[!-~]{1,128}$" })
}

/// The schema of a tenant.
pub(super) fn tenant(_: &mut DocumentSchemas) -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$" })
}

/// The schema of a tenant, or `*` for all.
pub(super) fn tenant_or_all(_: &mut DocumentSchemas) -> Value {
    json!({ "type": "string",
        "pattern": "^([*]|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$" })
}

/// The schema of any text.
pub(super) fn string(_: &mut DocumentSchemas) -> Value {
    json!({ "type": "string" })
}

/// The schema of a switch in the query.
pub(super) fn flag(_: &mut DocumentSchemas) -> Value {
    json!({ "type": "boolean", "default": false })
}

/// The schema of the page size of a list.
pub(super) fn list_limit(schemas: &mut DocumentSchemas) -> Value {
    limit(schemas.limits.list_page)
}

/// The schema of a page size with this default and maximum.
pub(super) fn limit((default, max): (usize, usize)) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": max, "default": default })
}
