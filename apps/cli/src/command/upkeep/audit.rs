//! `turnwire audit`: what was done in a tenant, by whom and when.

use anyhow::{Context as _, Result};
use serde_json::json;
use turnwire_client::AuditQuery;
use turnwire_event::code::code_name;
use turnwire_wire::rest::audit::AuditRecord;

use crate::args::AuditArgs;
use crate::connect;
use crate::terminal::output::print;
use crate::terminal::sanitize::sanitized_line;

/// The longest principal: that of the server.
const NAME_CHARS_MAX: usize = 128;

/// Prints the newest records that the arguments select.
pub(crate) async fn run(args: &AuditArgs) -> Result<()> {
    let query = AuditQuery {
        action: args.action.clone(),
        session: args.session,
        job: args.job.clone(),
        principal: args.by.clone(),
        from: args.from,
        to: args.to,
    };
    let client = connect::client(&args.client)?;
    let records = client.audit(&query, args.limit).await;
    let records =
        records.with_context(|| format!("asking {} for the audit", args.client.server))?;
    if args.json {
        let list = json!({ "records": records });
        print(&format!("{}\n", serde_json::to_string_pretty(&list)?));
        return Ok(());
    }
    if records.is_empty() {
        eprintln!("no records");
    }
    let lines: Vec<String> = records.iter().map(record_line).collect();
    print(&lines.concat());
    Ok(())
}

/// A record on one line: when, what, by whom, and the ids that it has.
fn record_line(record: &AuditRecord) -> String {
    let name = |name: &str| sanitized_line(name, NAME_CHARS_MAX);
    let mut line = format!(
        "{}  {}  {}",
        record.at,
        code_name(&record.action),
        name(&record.actor)
    );
    let mut add = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            line.push_str(&format!("  {label}{value}"));
        }
    };
    add("for ", record.acted_for.as_deref().map(name));
    add("", record.outcome.as_ref().map(code_name));
    add("job ", record.job.as_ref().map(ToString::to_string));
    add("", record.session_id.map(|id| id.to_string()));
    add("turn ", record.turn_id.map(|id| id.to_string()));
    add("", record.approval_id.map(|id| id.to_string()));
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_one_line_with_the_ids_that_it_has() {
        let record = |fields: serde_json::Value| -> AuditRecord {
            let mut record = json!({
                "audit_id": "aud_7", "at": "2026-11-02T08:00:00.000Z", "action": "job_fired",
                "actor": "cron", "acted_for": null, "session_id": null, "turn_id": null,
                "approval_id": null, "job": null, "outcome": null,
            });
            let object = record.as_object_mut().expect("an object");
            object.extend(fields.as_object().expect("fields").clone());
            serde_json::from_value(record).expect("a record")
        };
        let skipped = record(json!({
            "acted_for": "ann", "outcome": "skipped_paused", "job": "daily",
            "session_id": "sess_00000000000000000000000001",
        }));
        assert_eq!(
            record_line(&skipped),
            "2026-11-02T08:00:00.000Z  job_fired  cron  for ann  skipped_paused  job daily  \
             sess_00000000000000000000000001\n"
        );
        let hostile = record(json!({"action": "job_paused", "actor": "o\u{1b}[31mps\n"}));
        assert_eq!(
            record_line(&hostile),
            "2026-11-02T08:00:00.000Z  job_paused  ops\n"
        );
    }
}
