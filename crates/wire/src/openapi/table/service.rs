//! The OpenAPI and the AsyncAPI document, registered statuses, usage, problem pages, the live page, and health checks.

use serde_json::json;
use turnwire_event::UtcDay;

use super::OperationTag;
use crate::openapi::operation::{OperationSpec, RequestIdentity, SuccessResponse, get};
use crate::openapi::parameter::{OperationParameter, list_limit, string, tenant_or_all};
use crate::openapi::schemas::{SchemaFn, request_schema, response_schema};
use crate::problem::{Code, help};
use crate::rest::health::HealthReport;
use crate::rest::status_event::StatusEvents;
use crate::rest::usage::{UsageCursor, UsageReport};

const HTML: &str = "text/html";
const JSON: &str = "application/json";

pub(super) fn problems() -> OperationTag {
    let operations = vec![
        public("/problems", "listProblems", "Every type of problem")
            .about("An HTML page, or JSON if the client prefers it.")
            .response(page_or_json(
                "All types of problems.",
                response_schema::<help::ProblemList>,
            )),
        public("/problems/{code}", "readProblem", "One type of problem")
            .about("Meaning, causes and remedy; the `type` of a problem is this path.")
            .parameter(OperationParameter::path(
                "code",
                "The code of a problem.",
                |_| {
                    let names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
                    json!({ "type": "string", "enum": names })
                },
            ))
            .response(page_or_json(
                "The type of problem.",
                response_schema::<help::ProblemDescription>,
            ))
            .fails(&[Code::NotFound]),
    ];
    OperationTag {
        name: "problems",
        about: "The meaning of every error.",
        operations,
    }
}

pub(super) fn operations() -> OperationTag {
    let readiness = probe("/readyz", "readReadiness", "Whether new turns are taken")
        .about(
            "503 while the server drains, its database is damaged or its data folder is lost, 507 \
             while its disk is full: the answer that a submit would get. `reasons` of the problem has \
             the codes of all reasons.",
        )
        .json::<HealthReport>(200, "The server accepts turns.")
        .fails(&[
            Code::Draining,
            Code::DatabaseDamaged,
            Code::FolderLost,
            Code::StorageFull,
        ]);
    let operations = vec![
        get("/status-events", "listStatusEvents", "The registry of statuses")
            .identity(RequestIdentity::Counted)
            .about("Every status id that agents may emit as progress, with the file that defines it, its \
                 text in each language, and how often it was emitted, one page at a time.")
            .query("limit", "The page size.", list_limit)
            .after::<String>()
            .json::<StatusEvents>(200, "A page of the registry."),
        get("/usage", "readUsage", "What model calls came to")
            .about("Calls, tokens and cost of the tenant by day and model, and in total. A call counts on \
                 the day it ended, even if its session was deleted later. The rows are pages; the \
                 totals are those of all pages.")
            .query(
                "tenant",
                "Another tenant, or `*` for all, with the scope `admin`; the caller's own if absent.",
                tenant_or_all,
            )
            .scopes(&["own", "admin"])
            .query(
                "from",
                "The first day (UTC); 29 days before `to` if absent.",
                request_schema::<UtcDay>,
            )
            .query(
                "to",
                "The last day (UTC), at most 365 days after `from`; today if absent.",
                request_schema::<UtcDay>,
            )
            .after::<UsageCursor>()
            .json::<UsageReport>(200, "A page of the usage report."),
        public("/openapi.json", "readOpenApi", "This document")
            .about("With the limits of this server.")
            .response(SuccessResponse::new(200, "The document.").content(
                JSON,
                |_| json!({
                    "type": "object",
                    "required": ["openapi", "info", "paths"],
                    "properties": {
                        "openapi": { "type": "string" },
                        "info": { "type": "object" },
                        "paths": { "type": "object" },
                    },
                }),
            )),
        public("/asyncapi.json", "readAsyncApi", "The document of the streams")
            .about("The frames of the session wire and of the chat wire, as AsyncAPI 3.0.")
            .response(SuccessResponse::new(200, "The document.").content(
                JSON,
                |_| json!({
                    "type": "object",
                    "required": ["asyncapi", "info", "channels"],
                    "properties": {
                        "asyncapi": { "type": "string" },
                        "info": { "type": "object" },
                        "channels": { "type": "object" },
                    },
                }),
            )),
        probe("/healthz", "readHealth", "Whether the process lives")
            .about("Succeeds while the process runs.")
            .json::<HealthReport>(200, "The process runs."),
        readiness,
        probe("/metrics", "readMetrics", "Metrics")
            .scopes(&["metrics", "admin"])
            .about("In the text format of Prometheus.")
            .response(SuccessResponse::new(200, "The metrics.").content("text/plain", string))
            .fails(&[Code::TooManyRequests]),
        public("/", "readPage", "The live page")
            .about("Talk to the agent and watch its events in a browser.")
            .response(SuccessResponse::new(200, "The page.").content(HTML, string)),
    ];
    OperationTag {
        name: "operations",
        about: "Monitoring and operation of the server.",
        operations,
    }
}

/// Starts a `GET` operation that is the same for everybody and needs no token.
fn public(path: &'static str, id: &'static str, summary: &'static str) -> OperationSpec {
    get(path, id, summary)
        .identity(RequestIdentity::Counted)
        .scopes(&[])
}

/// Starts a `GET` operation of the operator's monitoring.
fn probe(path: &'static str, id: &'static str, summary: &'static str) -> OperationSpec {
    get(path, id, summary)
        .identity(RequestIdentity::Probe)
        .scopes(&[])
}

fn page_or_json(about: &'static str, shape: SchemaFn) -> SuccessResponse {
    let response = SuccessResponse::new(200, about);
    response.content(HTML, string).content(JSON, shape)
}
