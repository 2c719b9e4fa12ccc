//! Generates the OpenAPI 3.1 document from the table of operations and the schemas.

use serde_json::{Map, Value, json};

use super::operation::{OperationSpec, RequestIdentity, SuccessResponse};
use super::parameter::{OperationParameter, PRINCIPAL, TENANT};
use super::schemas::{DocumentSchemas, response_schema};
use super::served::DocumentLimits;
use super::table::tags;
use crate::problem::{self, Code, MEDIA_TYPE};

const DESCRIPTION: &str = "\
Turnwire is a server for LLM agents: it runs each turn and streams text, progress and results to \
clients, in one order, resumable from any point.\n\n\
Requests reject unknown fields and query parameters. Responses may gain members: clients skip \
members that they do not know. Every error is `application/problem+json` with a `code` whose \
description is at `/problems/<code>`, and a `trace_id` that identifies the request in the server's \
log. A server with authentication needs a bearer token that has one of the listed scopes; one \
without listens on loopback addresses only and needs none.";

/// Codes that every operation can fail with.
const COMMON_CODES: [Code; 3] = [Code::HostNotAllowed, Code::OriginNotAllowed, Code::Internal];

/// Codes of requests that count for an owner: invalid headers, and more requests at once than the
/// owner's share.
const IDENTITY_CODES: [Code; 3] = [
    Code::TenantInvalid,
    Code::InvalidRequest,
    Code::TooManyRequests,
];

/// Codes of requests with a token.
const TOKEN_CODES: [Code; 3] = [Code::Unauthorized, Code::Forbidden, Code::AuthUnavailable];

/// Codes of invalid request bodies.
const BODY_CODES: [Code; 6] = [
    Code::MalformedJson,
    Code::RequestTimeout,
    Code::BodyTooLarge,
    Code::UnsupportedMediaType,
    Code::InvalidRequest,
    Code::UnknownField,
];

/// Codes of invalid query parameters.
const QUERY_CODES: [Code; 2] = [Code::InvalidRequest, Code::UnknownField];

/// Generates the OpenAPI document of a server with these limits from the table and the types.
pub fn generate(limits: DocumentLimits) -> Value {
    let mut schemas = DocumentSchemas::new(limits);
    let (mut paths, mut tag_list) = (Map::new(), Vec::new());
    for tag in tags() {
        for operation in &tag.operations {
            let path = paths.entry(operation.path).or_insert_with(|| json!({}));
            path[operation.method] = operation_json(tag.name, operation, &mut schemas);
        }
        tag_list.push(json!({ "name": tag.name, "description": tag.about }));
    }
    // The schema that every error response refers to.
    response_schema::<problem::Problem>(&mut schemas);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Turnwire",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "contact": { "name": "Turnwire", "url": env!("CARGO_PKG_REPOSITORY") },
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{ "url": "/" }],
        "security": [],
        "tags": tag_list,
        "paths": paths,
        "components": { "schemas": schemas.into_components(), "securitySchemes": security_schemes() },
    });
    limits.set_in_schemas(&mut document);
    document
}

fn operation_json(tag: &str, operation: &OperationSpec, schemas: &mut DocumentSchemas) -> Value {
    let is_read = operation.identity != RequestIdentity::Probe;
    let identity = is_read.then_some([TENANT, PRINCIPAL]);
    let identity = identity.iter().flatten();
    let parameters = operation.parameters.iter().chain(identity);
    let parameters: Vec<Value> = parameters
        .map(|parameter| parameter_json(parameter, schemas))
        .collect();
    let mut out = json!({
        "operationId": operation.id,
        "tags": [tag],
        "summary": operation.summary,
        "description": operation.about,
    });
    out["security"] = security(operation);
    if !parameters.is_empty() {
        out["parameters"] = parameters.into();
    }
    if let Some(body) = &operation.body {
        out["requestBody"] = json!({
            "required": body.is_required,
            "content": { "application/json": {
                "schema": (body.shape)(schemas),
                "examples": body.examples,
            } },
        });
    }
    let mut responses = Map::new();
    for response in &operation.responses {
        responses.insert(response.status.to_string(), success_json(response, schemas));
    }
    for (status, codes) in failures(operation) {
        responses.insert(status.to_string(), error_json(status, &codes));
    }
    out["responses"] = responses.into();
    out
}

/// The ways to prove who the caller is.
fn security_schemes() -> Value {
    json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token of `turnwire token create`, or a JSON Web Token of the identity \
                            provider of the server.",
        },
        "attach": {
            "type": "apiKey",
            "in": "query",
            "name": "attach",
            "description": "The attach token of a session, valid once: browsers open streams without \
                            headers.",
        },
    })
}

/// The alternatives of which a request needs one: a token with a scope, or an attach token.
fn security(operation: &OperationSpec) -> Value {
    let bearers = operation.scopes.iter();
    let mut alternatives: Vec<Value> = bearers.map(|scope| json!({ "bearer": [scope] })).collect();
    if operation.takes_attach_token {
        alternatives.push(json!({ "attach": [] }));
    }
    alternatives.into()
}

fn parameter_json(parameter: &OperationParameter, schemas: &mut DocumentSchemas) -> Value {
    json!({
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.is_required,
        "description": parameter.about,
        "schema": (parameter.shape)(schemas),
    })
}

fn success_json(response: &SuccessResponse, schemas: &mut DocumentSchemas) -> Value {
    let mut out = json!({ "description": response.about });
    for (kind, shape) in &response.contents {
        out["content"][*kind] = json!({ "schema": shape(schemas) });
    }
    for header in &response.headers {
        out["headers"][header.name] = json!({
            "description": header.about,
            "required": true,
            "schema": (header.shape)(schemas),
        });
    }
    for link in &response.links {
        out["links"][link.operation] = json!({
            "operationId": link.operation,
            "parameters": { "id": link.value },
        });
    }
    out
}

/// The codes that an operation can fail with, by status.
fn failures(operation: &OperationSpec) -> Vec<(u16, Vec<Code>)> {
    let mut codes = COMMON_CODES.to_vec();
    if operation.identity != RequestIdentity::Probe {
        codes.extend(IDENTITY_CODES);
    }
    if !operation.scopes.is_empty() {
        codes.extend(TOKEN_CODES);
    }
    let has_query = operation.parameters.iter().any(|p| p.place == "query");
    match operation.body {
        Some(_) => codes.extend(BODY_CODES),
        None if has_query || operation.identity == RequestIdentity::Owner => {
            codes.extend(QUERY_CODES);
        }
        None => {}
    }
    let common = codes.into_iter().map(|code| (code.status(), code));
    let mut by_status: Vec<(u16, Vec<Code>)> = Vec::new();
    for (status, code) in common.chain(operation.failures.iter().copied()) {
        match by_status.iter_mut().find(|(listed, _)| *listed == status) {
            None => by_status.push((status, vec![code])),
            Some((_, codes)) if codes.contains(&code) => {}
            Some((_, codes)) => codes.push(code),
        }
    }
    by_status.sort_by_key(|(status, _)| *status);
    by_status
}

/// An error response: a problem with one of these codes.
fn error_json(status: u16, codes: &[Code]) -> Value {
    let names: Vec<&str> = codes.iter().map(|code| code.name()).collect();
    let titles: Vec<String> = codes
        .iter()
        .map(|code| format!("[`{}`]({}): {}.", code.name(), code.kind(), code.title()))
        .collect();
    json!({
        "description": titles.join("\n\n"),
        "content": { MEDIA_TYPE: { "schema": {
            "$ref": "#/components/schemas/Problem",
            "type": "object",
            "properties": {
                "code": { "type": "string", "enum": names },
                "status": { "type": "integer", "const": status },
            },
        } } },
    })
}
