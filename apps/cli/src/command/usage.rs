//! `turnwire usage`: what model calls came to, by day and model, from a server or from its folder.

use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use turnwire_event::{Clock as _, UtcDay};
use turnwire_log::CallRecords as _;
use turnwire_session::SystemClock;
use turnwire_wire::rest::usage::{DAYS_DEFAULT, UsageReport, UsageRow, UsageTotals};

use crate::args::UsageArgs;
use crate::connect;
use crate::terminal::color::{ColorMode, TextTone};
use crate::terminal::sanitize::line;

/// Rows that are read of a folder: more than a screen or a spreadsheet is good for, and a bound for
/// the memory of this command.
const ROWS_MAX: usize = 1_000_000;

/// The longest name of a model that is shown.
const MODEL_CHARS_MAX: usize = 60;

/// Prints what was used.
pub(crate) async fn run(args: &UsageArgs) -> Result<()> {
    let report = match &args.data {
        None => {
            let client = connect::client(&args.speaker)?;
            let response = client.usage(args.from, args.to).await;
            response.with_context(|| format!("asking {} what was used", args.speaker.server))?
        }
        Some(dir) => {
            let read = in_folder(dir, (args.from, args.to));
            read.with_context(|| format!("reading what was used of {}", dir.display()))?
        }
    };
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(&report)?)
    } else {
        as_text(&report, args.data.is_some(), ColorMode::of_stdout())
    };
    // Whoever reads may have seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

/// What a folder has of all tenants; a server tells each tenant its own.
fn in_folder(
    dir: &std::path::Path,
    (from, to): (Option<UtcDay>, Option<UtcDay>),
) -> Result<UsageReport> {
    let to = to.unwrap_or_else(|| UtcDay::of(SystemClock.now()));
    let from = from.unwrap_or_else(|| to.minus(DAYS_DEFAULT - 1));
    if from > to {
        bail!("--from ({from}) is after --to ({to})");
    }
    let rows = connect::folder(dir)?.daily_usage(None, (from, to), ROWS_MAX + 1)?;
    if rows.len() > ROWS_MAX {
        bail!("there are more than {ROWS_MAX} rows: ask for fewer days with --from and --to");
    }
    let rows = rows.into_iter().map(|row| {
        let of = (row.day, row.tenant, row.model);
        UsageRow::new(of, (row.calls, row.failed), row.usage)
    });
    Ok(UsageReport::new((from, to), rows.collect()))
}

const NUMBERS: [&str; 7] = [
    "calls",
    "failed",
    "input",
    "cached",
    "output",
    "reasoning",
    "cost",
];

fn numbers(of: UsageTotals) -> [String; 7] {
    let usage = of.usage;
    [
        of.calls.to_string(),
        of.failed.to_string(),
        usage.input_tokens.to_string(),
        usage.cached_tokens.to_string(),
        usage.output_tokens.to_string(),
        usage.reasoning_tokens.to_string(),
        format!("${:.4}", usage.cost_usd),
    ]
}

/// A table with the sum below; tenants only where there can be several.
fn as_text(report: &UsageReport, tenants: bool, paint: ColorMode) -> String {
    let (from, to) = (report.from, report.to);
    if report.rows.is_empty() {
        return format!("no model call ended from {from} to {to}\n");
    }
    let named = |day: String, tenant: &str, model: &str| {
        let tenant = tenants.then(|| line(tenant, MODEL_CHARS_MAX));
        let model = line(model, MODEL_CHARS_MAX);
        [day].into_iter().chain(tenant).chain([model])
    };
    let head = named("day".into(), "tenant", "model").chain(NUMBERS.map(str::to_owned));
    let body = report.rows.iter().map(|row| {
        let of = UsageTotals {
            calls: row.calls,
            failed: row.failed,
            usage: row.usage,
        };
        let names = named(row.day.to_string(), &row.tenant_id, &row.model);
        names.chain(numbers(of)).collect()
    });
    let sum = named("all".into(), "", "").chain(numbers(report.totals));
    let table: Vec<Vec<String>> = std::iter::once(head.collect())
        .chain(body)
        .chain([sum.collect()])
        .collect();
    let last = table.len() - 1;
    let lines = aligned(&table).into_iter().enumerate();
    let painted = lines.map(|(at, text)| match at {
        0 => paint.tint(TextTone::Quiet, &text),
        _ if at == last => paint.tint(TextTone::Strong, &text),
        _ => text,
    });
    painted.map(|text| format!("{text}\n")).collect()
}

/// The rows as lines: names to the left, numbers to the right.
fn aligned(table: &[Vec<String>]) -> Vec<String> {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |at: usize| {
        let cells = table.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(wide).collect();
    let names = columns.saturating_sub(NUMBERS.len());
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| {
            if at < names {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    table.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{TenantId, TokenUsage as Spent};

    fn row(day: &str, tenant: u128, model: &str, calls: u64, cost_usd: f64) -> UsageRow {
        let usage = Spent {
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
    fn a_table_has_a_line_for_each_row_and_the_sum_below() {
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
    fn tenants_are_told_apart_where_there_can_be_several() {
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
    fn nothing_used_is_said_in_words() {
        let text = as_text(&report(Vec::new()), false, ColorMode::Plain);
        assert_eq!(text, "no model call ended from 2026-11-01 to 2026-11-30\n");
    }
}
