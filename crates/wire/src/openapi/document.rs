//! The document: the table and the schemas, in the form of OpenAPI 3.1.

use serde_json::{Map, Value, json};

use super::operation::{Answer, Operation, Problem, Tag};
use super::parameter::{PRINCIPAL, Parameter, TENANT};
use super::schemas::{Schemas, given};
use super::served::Limits;
use super::table::operations;
use crate::problem::{self, Code, MEDIA_TYPE};

const ABOUT: &str = "\
One log, every wire. Turnwire runs turns of LLM agents and carries what happens in them to clients, \
in one order, resumable from any point.\n\n\
Requests refuse fields and query parameters that they do not know. Answers may grow: clients pass \
over members that they do not know. Every error is `application/problem+json` with a `code` whose \
page is at `/problems/<code>`, and a `trace_id` that finds its cause in the server's log. \
Requests are not authenticated; the server listens on loopback addresses only.";

/// Ways in which everything can fail.
const EVERYWHERE: [Code; 3] = [Code::HostNotAllowed, Code::OriginNotAllowed, Code::Internal];

/// Ways in which whom a request speaks for can be unclear.
const OWNED: [Code; 2] = [Code::TenantInvalid, Code::InvalidRequest];

/// Ways in which a body can be no body.
const BODY: [Code; 6] = [
    Code::MalformedJson,
    Code::RequestTimeout,
    Code::BodyTooLarge,
    Code::UnsupportedMediaType,
    Code::InvalidRequest,
    Code::UnknownField,
];

/// Ways in which a query can be no query.
const QUERY: [Code; 2] = [Code::InvalidRequest, Code::UnknownField];

/// Generates the OpenAPI document of a server with these limits from the table and the types.
pub fn generate(limits: Limits) -> Value {
    let mut schemas = Schemas::new(limits);
    let mut paths = Map::new();
    for operation in operations() {
        let path = paths
            .entry(operation.path)
            .or_insert_with(|| Value::Object(Map::new()));
        path[operation.method.name().to_ascii_lowercase()] = written(operation, &mut schemas);
    }
    // The schema that every error answer refers to.
    given::<problem::Problem>(&mut schemas);
    let tags: Vec<Value> = Tag::ALL
        .iter()
        .map(|tag| json!({ "name": tag.name(), "description": tag.about() }))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Turnwire",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{ "url": "/" }],
        "security": [],
        "tags": tags,
        "paths": paths,
        "components": { "schemas": schemas.named() },
    })
}

fn written(operation: &Operation, schemas: &mut Schemas) -> Value {
    let identity: &[Parameter] = if operation.owned {
        const { &[TENANT, PRINCIPAL] }
    } else {
        &[]
    };
    let parameters: Vec<Value> = operation
        .parameters
        .iter()
        .chain(identity)
        .map(|parameter| taken(parameter, schemas))
        .collect();
    let mut out = json!({
        "operationId": operation.id,
        "tags": [operation.tag.name()],
        "summary": operation.summary,
        "description": operation.about,
    });
    if !parameters.is_empty() {
        out["parameters"] = parameters.into();
    }
    if let Some(body) = &operation.body {
        out["requestBody"] = json!({
            "required": body.required,
            "content": { "application/json": {
                "schema": (body.shape)(schemas),
                "examples": (body.examples)(),
            } },
        });
    }
    let mut responses = Map::new();
    for answer in operation.answers {
        responses.insert(answer.status.to_string(), good(answer, schemas));
    }
    for (status, codes) in failures(operation) {
        responses.insert(status.to_string(), bad(status, &codes));
    }
    out["responses"] = responses.into();
    out
}

fn taken(parameter: &Parameter, schemas: &mut Schemas) -> Value {
    json!({
        "name": parameter.name,
        "in": parameter.place.name(),
        "required": parameter.required,
        "description": parameter.about,
        "schema": (parameter.shape)(schemas),
    })
}

fn good(answer: &Answer, schemas: &mut Schemas) -> Value {
    let mut out = json!({ "description": answer.about });
    for (kind, shape) in answer.contents {
        out["content"][*kind] = json!({ "schema": shape(schemas) });
    }
    for header in answer.headers {
        out["headers"][header.name] = json!({
            "description": header.about,
            "required": true,
            "schema": (header.shape)(schemas),
        });
    }
    for link in answer.links {
        out["links"][link.operation] = json!({
            "operationId": link.operation,
            "parameters": { link.parameter: link.value },
        });
    }
    out
}

/// The codes an operation can fail with, by status.
fn failures(operation: &Operation) -> Vec<(u16, Vec<Code>)> {
    let of = |codes: &'static [Code]| codes.iter().map(|&code| Problem::Of(code));
    let mut all: Vec<Problem> = of(&EVERYWHERE).collect();
    if operation.owned {
        all.extend(of(&OWNED));
        let more: &[Code] = if operation.body.is_some() {
            &BODY
        } else {
            &QUERY
        };
        all.extend(of(more));
    }
    all.extend(operation.problems);
    let mut by_status: Vec<(u16, Vec<Code>)> = Vec::new();
    for problem in all {
        let (status, code) = (problem.status(), problem.code());
        match by_status.iter_mut().find(|(known, _)| *known == status) {
            None => by_status.push((status, vec![code])),
            Some((_, codes)) if codes.contains(&code) => {}
            Some((_, codes)) => codes.push(code),
        }
    }
    by_status.sort_by_key(|(status, _)| *status);
    by_status
}

/// An error answer: a problem whose code is one of a few.
fn bad(status: u16, codes: &[Code]) -> Value {
    let names: Vec<&str> = codes.iter().map(|code| code.name()).collect();
    let titles: Vec<String> = codes
        .iter()
        .map(|code| format!("[`{}`]({}): {}.", code.name(), code.kind(), code.title()))
        .collect();
    json!({
        "description": titles.join("\n\n"),
        "content": { MEDIA_TYPE: { "schema": {
            "$ref": "#/components/schemas/Problem",
            "properties": { "code": { "enum": names }, "status": { "const": status } },
        } } },
    })
}
