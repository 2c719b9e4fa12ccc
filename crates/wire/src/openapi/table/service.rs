//! The OpenAPI document, registered statuses, usage, problem pages, the live page, and health checks.

use serde_json::json;

use super::{JSON, ok, text};
use crate::openapi::operation::{FailureCode, OperationMethod, OperationSpec, OperationTag};
use crate::openapi::parameter::{CODE, FROM, TO};
use crate::openapi::schemas::response_schema;
use crate::problem::{Code, help};
use crate::rest::health::HealthReport;
use crate::rest::status_event::StatusEvents;
use crate::rest::usage::UsageReport;

const HTML: &str = "text/html";

pub(super) const OPERATIONS: &[OperationSpec] = &[
    OperationSpec {
        method: OperationMethod::Get,
        path: "/problems",
        id: "listProblems",
        tag: OperationTag::Problems,
        summary: "Every type of problem",
        about: "An HTML page, or JSON if the client prefers it.",
        responses: &[ok(
            "All types of problems.",
            &[(HTML, text), (JSON, response_schema::<help::ProblemList>)],
        )],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/problems/{code}",
        id: "readProblem",
        tag: OperationTag::Problems,
        summary: "One type of problem",
        about: "Meaning, causes and remedy; the `type` of a problem is this path.",
        parameters: &[CODE],
        responses: &[ok(
            "The type of problem.",
            &[
                (HTML, text),
                (JSON, response_schema::<help::ProblemDescription>),
            ],
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
        about: "Every status id that agents may emit as progress, with the file that defines it, its text in each language, and how often it was emitted.",
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
        about: "Calls, tokens and cost of the tenant by day and model, and in total. A call counts on the day it ended, even if its session was deleted later.",
        owned: true,
        parameters: &[FROM, TO],
        responses: &[ok(
            "The usage report.",
            &[(JSON, response_schema::<UsageReport>)],
        )],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/openapi.json",
        id: "readOpenApi",
        tag: OperationTag::Operations,
        summary: "This document",
        about: "With the limits of this server.",
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
        about: "Succeeds while the process runs.",
        responses: &[ok(
            "The process runs.",
            &[(JSON, response_schema::<HealthReport>)],
        )],
        ..PLAIN
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/readyz",
        id: "readReadiness",
        tag: OperationTag::Operations,
        summary: "Whether new turns are taken",
        about: "503 while the server drains or its disk is full.",
        responses: &[ok(
            "The server accepts turns.",
            &[(JSON, response_schema::<HealthReport>)],
        )],
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

/// An operation without parameters, body and owner.
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
