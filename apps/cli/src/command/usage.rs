//! `turnwire usage`: token usage and cost by day and model, from a server or a data folder.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use turnwire_event::{Clock as _, TokenUsage, UtcDay};
use turnwire_log::CallRecords as _;
use turnwire_session::SystemClock;
use turnwire_wire::rest::usage::{DAYS_DEFAULT, UsageReport, UsageRow};

use crate::args::UsageArgs;
use crate::connect;
use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::output::print;
use crate::terminal::sanitize::sanitized_line;

/// The most rows that are read from a folder, a limit for the memory of this command.
const ROWS_MAX: usize = 1_000_000;

/// The longest name of a model that is shown.
const MODEL_CHARS_MAX: usize = 60;

/// Prints the [`UsageReport`] of a server or of a data folder.
pub(crate) async fn run(args: &UsageArgs) -> Result<()> {
    let report = match &args.data {
        None => {
            let client = connect::client(&args.client)?;
            let response = client.usage(args.from, args.to).await;
            response.with_context(|| format!("asking {} for the usage", args.client.server))?
        }
        Some(dir) => read_folder(dir, args.from, args.to)
            .with_context(|| format!("reading the usage of {}", dir.display()))?,
    };
    print(&match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&report)?),
        false => as_text(&report, args.data.is_some(), ColorMode::of_stdout()),
    });
    Ok(())
}

/// The usage of all tenants of a folder; a server reports one tenant.
fn read_folder(dir: &Path, from: Option<UtcDay>, to: Option<UtcDay>) -> Result<UsageReport> {
    let to = to.unwrap_or_else(|| UtcDay::of(SystemClock.now()));
    let from = from.unwrap_or_else(|| to.minus(DAYS_DEFAULT - 1));
    ensure!(from <= to, "--from ({from}) is after --to ({to})");
    let rows = connect::folder(dir)?.daily_usage(None, (from, to), ROWS_MAX + 1)?;
    ensure!(
        rows.len() <= ROWS_MAX,
        "there are more than {ROWS_MAX} rows: select fewer days with --from and --to"
    );
    let rows = rows.into_iter().map(|row| {
        let key = (row.day, row.tenant, row.model);
        UsageRow::new(key, (row.calls, row.failed), row.usage)
    });
    Ok(UsageReport::new((from, to), rows.collect()))
}

/// The columns of numbers, and how many there are.
const NUMBERS: &str = "calls failed input cached output reasoning cost";
const NUMBERS_COUNT: usize = 7;

fn numbers(calls: u64, failed: u64, usage: TokenUsage) -> Vec<String> {
    vec![
        calls.to_string(),
        failed.to_string(),
        usage.input_tokens.to_string(),
        usage.cached_tokens.to_string(),
        usage.output_tokens.to_string(),
        usage.reasoning_tokens.to_string(),
        format!("${:.4}", usage.cost_usd),
    ]
}

/// A table with the total below; `tenants` adds their column.
fn as_text(report: &UsageReport, tenants: bool, color: ColorMode) -> String {
    let (from, to) = (report.from, report.to);
    if report.rows.is_empty() {
        return format!("no model call ended from {from} to {to}\n");
    }
    let row = |day: String, tenant: &str, model: &str, numbers: Vec<String>| {
        let tenant = tenants.then(|| sanitized_line(tenant, MODEL_CHARS_MAX));
        let names = [day].into_iter().chain(tenant);
        let names = names.chain([sanitized_line(model, MODEL_CHARS_MAX)]);
        names.chain(numbers).collect::<Vec<String>>()
    };
    let head = NUMBERS.split(' ').map(str::to_owned).collect();
    let mut table = vec![row("day".into(), "tenant", "model", head)];
    table.extend(report.rows.iter().map(|one| {
        let numbers = numbers(one.calls, one.failed, one.usage);
        row(one.day.to_string(), &one.tenant_id, &one.model, numbers)
    }));
    let totals = report.totals;
    let totals = numbers(totals.calls, totals.failed, totals.usage);
    table.push(row("all".into(), "", "", totals));
    let last = table.len() - 1;
    let lines = aligned(&table).into_iter().enumerate();
    let lines = lines.map(|(at, text)| match at {
        0 => color.tint(TextTone::Quiet, &text) + "\n",
        _ if at == last => color.tint(TextTone::Strong, &text) + "\n",
        _ => text + "\n",
    });
    lines.collect()
}

/// The rows as lines: names to the left, numbers to the right.
fn aligned(table: &[Vec<String>]) -> Vec<String> {
    let columns = table.first().map_or(0, Vec::len);
    let width = |at: usize| table.iter().map(|row| row[at].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| match at + NUMBERS_COUNT < columns {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    table.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{TenantId, TokenUsage};

    fn row(day: &str, tenant: u128, model: &str, calls: u64, cost_usd: f64) -> UsageRow {
        let usage = TokenUsage {
            input_tokens: 1_000 * calls,
            output_tokens: 20,
            total_tokens: 1_000 * calls + 20,
            reasoning_tokens: 5,
            cached_tokens: 7,
            cost_usd,
        };
        let day = day.parse().expect("a day");
        UsageRow::new((day, TenantId(tenant), model.into()), (calls, 1), usage)
    }

    fn report(rows: Vec<UsageRow>) -> UsageReport {
        let day = |text: &str| text.parse().expect("a day");
        UsageReport::new((day("2026-11-01"), day("2026-11-30")), rows)
    }

    #[test]
    fn table_has_a_line_per_row_and_the_total_below() {
        let rows = vec![
            row("2026-11-15", 0, "local:small", 12, 0.0),
            row("2026-11-16", 0, "big:\u{1b}[31mone", 3, 1.25),
        ];
        let text = as_text(&report(rows), false, ColorMode::Plain);
        let expected = "\
day         model        calls  failed  input  cached  output  reasoning     cost
2026-11-15  local:small     12       1  12000       7      20          5  $0.0000
2026-11-16  big:one          3       1   3000       7      20          5  $1.2500
all                         15       2  15000      14      40         10  $1.2500
";
        assert_eq!(text, expected);
    }

    #[test]
    fn tenants_have_a_column_if_there_can_be_several() {
        let rows = vec![row("2026-11-15", 1, "m", 1, 0.5)];
        let text = as_text(&report(rows), true, ColorMode::Plain);
        let mut lines = text.lines();
        let head = lines.next().expect("a head");
        assert!(head.starts_with("day         tenant "), "{head}");
        let first = lines.next().expect("a row");
        let expected = "2026-11-15  00000000-0000-0000-0000-000000000001  m";
        assert!(first.starts_with(expected), "{first}");
    }

    #[test]
    fn empty_report_is_a_sentence() {
        let text = as_text(&report(Vec::new()), false, ColorMode::Plain);
        assert_eq!(text, "no model call ended from 2026-11-01 to 2026-11-30\n");
    }
}
