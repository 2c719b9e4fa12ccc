//! The document itself, the registry of statuses, what was used, the problem pages, the live page,
//! and what supervisors ask.

use serde_json::json;

use super::{JSON, ok, text};
use crate::openapi::operation::{FailureCode, OperationMethod, OperationSpec, OperationTag};
use crate::openapi::parameter::{CODE, FROM, TO};
use crate::openapi::schemas::response_schema;
use crate::problem::{Code, help};
use crate::rest::health::Health;
use crate::rest::status_event::StatusEvents;
use crate::rest::usage::Report;

const HTML: &str = "text/html";

pub(super) const OPERATIONS: &[OperationSpec] = &[
    OperationSpec {
        method: OperationMethod::Get,
        path: "/problems",
        id: "listProblems",
        tag: OperationTag::Problems,
        summary: "Every type of problem",
        about: "A page, or JSON for those who accept that rather.",
        responses: &[ok(
            "All types of problems.",
            &[(HTML, text), (JSON, response_schema::<help::List>)],
        )],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/problems/{code}",
        id: "readProblem",
        tag: OperationTag::Problems,
        summary: "One type of problem",
        about: "What it means, when it happens and what to do; the `type` of a problem is this path.",
        parameters: &[CODE],
        responses: &[ok(
            "The type of problem.",
            &[(HTML, text), (JSON, response_schema::<help::Description>)],
        )],
        problems: &[FailureCode::Default(Code::NotFound)],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/status-events",
        id: "listStatusEvents",
        tag: OperationTag::Operations,
        summary: "The registry of statuses",
        about: "Every identifier that agents may emit as progress, with the file that holds it, its words in each language, and how often it was emitted.",
        responses: &[ok(
            "The registry.",
            &[(JSON, response_schema::<StatusEvents>)],
        )],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/usage",
        id: "readUsage",
        tag: OperationTag::Operations,
        summary: "What model calls came to",
        about: "Calls, tokens and cost of the tenant by day and model, and in all. Calls count on the day they ended, also those of sessions that were deleted since.",
        owned: true,
        parameters: &[FROM, TO],
        responses: &[ok(
            "What they came to.",
            &[(JSON, response_schema::<Report>)],
        )],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/openapi.json",
        id: "readOpenApi",
        tag: OperationTag::Operations,
        summary: "This document",
        about: "With the limits that this server is set to.",
        responses: &[ok(
            "The document.",
            &[(
                JSON,
                |_| json!({ "type": "object", "required": ["openapi", "info", "paths"] }),
            )],
        )],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/healthz",
        id: "readHealth",
        tag: OperationTag::Operations,
        summary: "Whether the process lives",
        about: "Answers as long as there is anyone to answer.",
        responses: &[ok("It lives.", &[(JSON, response_schema::<Health>)])],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/readyz",
        id: "readReadiness",
        tag: OperationTag::Operations,
        summary: "Whether new turns are taken",
        about: "503 while the server drains or its disk is full.",
        responses: &[ok("It takes turns.", &[(JSON, response_schema::<Health>)])],
        problems: &[
            FailureCode::Default(Code::Draining),
            FailureCode::WithStatus(Code::StorageFull, 503),
        ],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/metrics",
        id: "readMetrics",
        tag: OperationTag::Operations,
        summary: "Metrics",
        about: "In the text format of Prometheus.",
        responses: &[ok("The metrics.", &[("text/plain", text)])],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/",
        id: "readPage",
        tag: OperationTag::Operations,
        summary: "The live page",
        about: "Talk to the agent and watch its events in a browser.",
        responses: &[ok("The page.", &[(HTML, text)])],
        ..PLAIN
    },
];

/// Takes nothing, speaks for nobody.
const PLAIN: OperationSpec = OperationSpec {
    method: OperationMethod::Get,
    path: "",
    id: "",
    tag: OperationTag::Operations,
    summary: "",
    about: "",
    owned: false,
    parameters: &[],
    body: None,
    responses: &[],
    problems: &[],
};
