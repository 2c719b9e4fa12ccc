//! `/jobs`: the jobs that schedulers name, and the switch that pauses them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use turnwire_event::JobName;
use turnwire_session::{Error, JobController, JobSwitch};
use turnwire_wire::budget::cut_to_fit;
use turnwire_wire::rest::audit::{Job, JobList};

use super::take_tenant;
use crate::config::ServerConfig;
use crate::error::{RequestFault, run_to_end};
use crate::request::{AdminCaller, QueryParams};
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/jobs", get(list))
        .route("/jobs/{job}/pause", post(pause))
        .route("/jobs/{job}/resume", post(resume))
}

async fn list(
    State(jobs): State<JobController>,
    State(config): State<Arc<ServerConfig>>,
    AdminCaller(caller): AdminCaller,
    mut params: QueryParams,
) -> Result<Json<JobList>, RequestFault> {
    let tenant = take_tenant(&mut params, &caller)?;
    let sizes = &config.session;
    let rows = params.take_limit(sizes.list_page, sizes.list_page_max)?;
    let after: Option<JobName> = params.take_cursor("after")?;
    params.refuse_rest()?;
    let bytes = config.http.answer_max_bytes;
    let bounds = turnwire_session::PageBounds { rows, bytes };
    let (rows, next) = jobs.list(&caller.owner, tenant, after, bounds).await?;
    let mut jobs: Vec<Job> = rows.into_iter().map(Into::into).collect();
    let next = match cut_to_fit(&mut jobs, bytes) {
        true => jobs.last().map(|job| job.job.clone()),
        false => next,
    };
    Ok(Json(JobList { jobs, next }))
}

async fn pause(
    jobs: State<JobController>,
    caller: AdminCaller,
    job: Path<String>,
    params: QueryParams,
) -> Result<Json<Job>, RequestFault> {
    switch(jobs, caller, job, params, JobSwitch::Pause).await
}

async fn resume(
    jobs: State<JobController>,
    caller: AdminCaller,
    job: Path<String>,
    params: QueryParams,
) -> Result<Json<Job>, RequestFault> {
    switch(jobs, caller, job, params, JobSwitch::Resume).await
}

async fn switch(
    State(jobs): State<JobController>,
    AdminCaller(caller): AdminCaller,
    Path(job): Path<String>,
    params: QueryParams,
    switch: JobSwitch,
) -> Result<Json<Job>, RequestFault> {
    params.refuse_rest()?;
    // A name of the wrong form is one that no job has.
    let job: JobName = job.parse().map_err(|_| Error::JobNotFound)?;
    let switched = async move { jobs.switch(&caller.requester(), job, switch).await };
    let row = run_to_end(switched).await?;
    Ok(Json(row.into()))
}
