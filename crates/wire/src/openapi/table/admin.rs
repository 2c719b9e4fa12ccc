//! What the administrators of a tenant do: read the audit, pause and resume jobs.

use turnwire_event::code::AuditAction;
use turnwire_event::row::AuditId;
use turnwire_event::{JobName, SessionId, UtcDay};

use super::OperationTag;
use crate::openapi::operation::{OperationSpec, get, post};
use crate::openapi::parameter::{OperationParameter, list_limit, principal, tenant};
use crate::openapi::schemas::request_schema;
use crate::problem::Code;
use crate::rest::audit::{AuditList, Job, JobList};

/// The failures of reads.
const READ: &[Code] = &[Code::TooManyRequests, Code::DatabaseDamaged];

pub(super) fn tag() -> OperationTag {
    let operations = vec![
        of_tenant(get("/audit", "listAudit", "List what was done"))
            .about(
                "Requests of schedulers, paused and resumed jobs, deleted sessions, and decisions on \
                 approvals, newest first, one page at a time. A page may be empty and still have a \
                 next one.",
            )
            .query("action", "Only this action.", request_schema::<AuditAction>)
            .query("session", "Only what was done to this session.", request_schema::<SessionId>)
            .query("job", "Only what was done for this job.", request_schema::<JobName>)
            .query("principal", "Only what this principal did, or others did for it.", principal)
            .query("from", "The first day (UTC).", request_schema::<UtcDay>)
            .query("to", "The last day (UTC).", request_schema::<UtcDay>)
            .page::<AuditId>(list_limit)
            .json::<AuditList>(200, "A page of records.")
            .fails(READ),
        of_tenant(get("/jobs", "listJobs", "List jobs"))
            .about(
                "The jobs that schedulers have named in the submit of a turn, by name. This server \
                 has no schedule of its own.",
            )
            .query("limit", "The page size.", list_limit)
            .after::<JobName>()
            .json::<JobList>(200, "A page of jobs.")
            .fails(READ),
        switch("/jobs/{job}/pause", "pauseJob", "Pause a job").about(
            "From the response on, submits that name the job start no turn: they are answered with \
             409 `job_paused`. Turns that were accepted before go on. Pausing a paused job has no \
             effect.",
        ),
        switch("/jobs/{job}/resume", "resumeJob", "Resume a job").about(
            "Submits that name the job start turns again. Those that were skipped are not repeated. \
             Resuming a job that is not paused has no effect.",
        ),
    ];
    OperationTag {
        name: "administration",
        about: "The audit and the jobs of a tenant, for its administrators.",
        operations,
    }
}

/// A read of a tenant that may be another than the caller's.
fn of_tenant(operation: OperationSpec) -> OperationSpec {
    operation.scopes(&["admin"]).query(
        "tenant",
        "Another tenant; the caller's own if absent.",
        tenant,
    )
}

fn switch(path: &'static str, id: &'static str, summary: &'static str) -> OperationSpec {
    let shape = request_schema::<JobName>;
    post(path, id, summary)
        .scopes(&["admin"])
        .parameter(OperationParameter::path("job", "The job.", shape))
        .json::<Job>(200, "The job as it is then.")
        .fails(&[Code::JobNotFound, Code::FolderLost, Code::StorageFull])
        .fails(READ)
}
