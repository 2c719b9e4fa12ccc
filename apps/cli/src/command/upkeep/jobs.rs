//! `turnwire jobs`: the jobs of schedulers, which an administrator pauses and resumes.

use anyhow::{Context as _, Result};
use serde_json::json;
use turnwire_event::code::code_name;
use turnwire_wire::rest::audit::Job;

use crate::args::{JobListArgs, JobSwitchArgs, JobsArgs, JobsCommand};
use crate::connect;
use crate::terminal::output::print;

/// Lists, pauses or resumes jobs.
pub(crate) async fn run(args: &JobsArgs) -> Result<()> {
    match &args.command {
        JobsCommand::List(args) => list(args).await,
        JobsCommand::Pause(args) => switch(args, true).await,
        JobsCommand::Resume(args) => switch(args, false).await,
    }
}

async fn list(args: &JobListArgs) -> Result<()> {
    let jobs = connect::client(&args.client)?.jobs().await;
    let jobs = jobs.with_context(|| format!("asking {} for the jobs", args.client.server))?;
    if args.json {
        let list = json!({ "jobs": jobs });
        print(&format!("{}\n", serde_json::to_string_pretty(&list)?));
        return Ok(());
    }
    if jobs.is_empty() {
        eprintln!("no jobs; a scheduler makes one known with \"job\" in the submit of a turn");
    }
    let lines: Vec<String> = jobs.iter().map(job_line).collect();
    print(&lines.concat());
    Ok(())
}

async fn switch(args: &JobSwitchArgs, pauses: bool) -> Result<()> {
    let client = connect::client(&args.client)?;
    let switched = match pauses {
        true => client.pause_job(&args.job).await,
        false => client.resume_job(&args.job).await,
    };
    let job = switched.with_context(|| format!("asking {}", args.client.server))?;
    print(&match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&job)?),
        false => job_line(&job),
    });
    Ok(())
}

/// A job on one line. Its names have no control characters, which the server and the client check.
fn job_line(job: &Job) -> String {
    let state = match (&job.paused_at, &job.paused_by) {
        (Some(at), Some(by)) => format!("paused by {by} since {at}"),
        _ => "active".to_owned(),
    };
    let outcome = code_name(&job.last_outcome);
    format!(
        "{}  {state}  last {outcome} {}\n",
        job.job, job.last_fired_at
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_is_one_line_with_its_state() {
        let active = json!({
            "job": "daily", "paused": false, "paused_at": null, "paused_by": null,
            "created_at": "2026-11-01T08:00:00.000Z", "created_by": "cron",
            "last_fired_at": "2026-11-02T08:00:00.000Z", "last_outcome": "dispatched",
        });
        let job: Job = serde_json::from_value(active).expect("a job");
        let expected = "daily  active  last dispatched 2026-11-02T08:00:00.000Z\n";
        assert_eq!(job_line(&job), expected);
        let paused = Job {
            paused: true,
            paused_at: Some("2026-11-03T08:00:00Z".parse().expect("a time")),
            paused_by: Some("ops".into()),
            ..job
        };
        let expected = "daily  paused by ops since 2026-11-03T08:00:00.000Z  last dispatched 2026-11-02T08:00:00.000Z\n";
        assert_eq!(job_line(&paused), expected);
    }
}
