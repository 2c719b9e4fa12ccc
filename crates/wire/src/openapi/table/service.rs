//! The document itself, the registry of statuses, what was used, the problem pages, the live page,
//! and what supervisors ask.

use serde_json::json;

use super::{JSON, ok, text};
use crate::openapi::operation::{Method, Operation, Problem, Tag};
use crate::openapi::parameter::{CODE, FROM, TO};
use crate::openapi::schemas::given;
use crate::problem::{Code, help};
use crate::rest::health::Health;
use crate::rest::status_event::StatusEvents;
use crate::rest::usage::Report;

const HTML: &str = "text/html";

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/problems",
        id: "listProblems",
        tag: Tag::Problems,
        summary: "Every type of problem",
        about: "A page, or JSON for those who accept that rather.",
        answers: &[ok(
            "All types of problems.",
            &[(HTML, text), (JSON, given::<help::List>)],
        )],
        ..PLAIN
    },
    Operation {
        method: Method::Get,
        path: "/problems/{code}",
        id: "readProblem",
        tag: Tag::Problems,
        summary: "One type of problem",
        about: "What it means, when it happens and what to do; the `type` of a problem is this path.",
        parameters: &[CODE],
        answers: &[ok(
            "The type of problem.",
            &[(HTML, text), (JSON, given::<help::Description>)],
        )],
        problems: &[Problem::Of(Code::NotFound)],
        ..PLAIN
    },
    Operation {
        method: Method::Get,
        path: "/status-events",
        id: "listStatusEvents",
        tag: Tag::Operations,
        summary: "The registry of statuses",
        about: "Every identifier that agents may emit as progress, with the file that holds it, its words in each language, and how often it was emitted.",
        answers: &[ok("The registry.", &[(JSON, given::<StatusEvents>)])],
        ..PLAIN
    },
    Operation {
        method: Method::Get,
        path: "/usage",
        id: "readUsage",
        tag: Tag::Operations,
        summary: "What model calls came to",
        about: "Calls, tokens and cost of the tenant by day and model, and in all. Calls count on the day they ended, also those of sessions that were deleted since.",
        owned: true,
        parameters: &[FROM, TO],
        answers: &[ok("What they came to.", &[(JSON, given::<Report>)])],
        ..PLAIN
    },
    Operation {
        method: Method::Get,
        path: "/openapi.json",
        id: "readOpenApi",
        tag: Tag::Operations,
        summary: "This document",
        about: "With the limits that this server is set to.",
        answers: &[ok(
            "The document.",
            &[(
                JSON,
                |_| json!({ "type": "object", "required": ["openapi", "info", "paths"] }),
            )],
        )],
        ..PLAIN
    },
    Operation {
        method: Method::Get,
        path: "/healthz",
        id: "readHealth",
        tag: Tag::Operations,
        summary: "Whether the process lives",
        about: "Answers as long as there is anyone to answer.",
        answers: &[ok("It lives.", &[(JSON, given::<Health>)])],
        ..PLAIN
    },
    Operation {
        method: Method::Get,
        path: "/readyz",
        id: "readReadiness",
        tag: Tag::Operations,
        summary: "Whether new turns are taken",
        about: "503 while the server drains or its disk is full.",
        answers: &[ok("It takes turns.", &[(JSON, given::<Health>)])],
        problems: &[
            Problem::Of(Code::Draining),
            Problem::As(Code::StorageFull, 503),
        ],
        ..PLAIN
    },
    Operation {
        method: Method::Get,
        path: "/metrics",
        id: "readMetrics",
        tag: Tag::Operations,
        summary: "Metrics",
        about: "In the text format of Prometheus.",
        answers: &[ok("The metrics.", &[("text/plain", text)])],
        ..PLAIN
    },
    Operation {
        method: Method::Get,
        path: "/",
        id: "readPage",
        tag: Tag::Operations,
        summary: "The live page",
        about: "Talk to the agent and watch its events in a browser.",
        answers: &[ok("The page.", &[(HTML, text)])],
        ..PLAIN
    },
];

/// Takes nothing, speaks for nobody.
const PLAIN: Operation = Operation {
    method: Method::Get,
    path: "",
    id: "",
    tag: Tag::Operations,
    summary: "",
    about: "",
    owned: false,
    parameters: &[],
    body: None,
    answers: &[],
    problems: &[],
};
