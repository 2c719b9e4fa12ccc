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

/// The largest number of rows that are read from a data folder; bounds the memory of this command.
const ROWS_MAX: usize = 1_000_000;

/// The longest name of a model or tenant that is shown.
const NAME_CHARS_MAX: usize = 60;

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
        false => usage_table(&report, args.data.is_some(), ColorMode::of_stdout()),
    });
    Ok(())
}

/// Reads the usage of all tenants from a data folder. A server reports only the tenant of the request.
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
        UsageRow::new(key, (row.calls, row.failed, row.stopped), row.usage)
    });
    Ok(UsageReport::new((from, to), rows.collect()))
}

/// The headers of the number columns, which stand right of the names.
const NUMBER_HEADERS: [&str; 7] = [
    "calls",
    "failed",
    "input",
    "cached",
    "output",
    "reasoning",
    "cost",
];

/// The cells of a row under [`NUMBER_HEADERS`].
type NumberCells = [String; NUMBER_HEADERS.len()];

fn number_cells(calls: u64, failed: u64, usage: TokenUsage) -> NumberCells {
    [
        calls.to_string(),
        failed.to_string(),
        shortened(usage.input_tokens),
        shortened(usage.cached_tokens),
        shortened(usage.output_tokens),
        shortened(usage.reasoning_tokens),
        format!("${:.4}", usage.cost_usd),
    ]
}

/// A number of at most seven characters: millions from ten million on, then billions. `--json` has all
/// digits.
fn shortened(number: u64) -> String {
    const MILLION: f64 = 1e6;
    const BILLION: f64 = 1e9;
    match number {
        0..10_000_000 => number.to_string(),
        10_000_000..10_000_000_000 => format!("{:.1}M", number as f64 / MILLION),
        10_000_000_000.. => format!("{:.1}B", number as f64 / BILLION),
    }
}

/// The report as a table: a header, the [`UsageRow`]s, and the totals. A row is one line if all rows
/// fit into [`WIDTH_MAX`], else its names stand on a line of their own. The tenant is a column only if
/// `has_tenants`.
fn usage_table(report: &UsageReport, has_tenants: bool, color: ColorMode) -> String {
    let (from, to) = (report.from, report.to);
    if report.rows.is_empty() {
        return format!("no model call ended from {from} to {to}\n");
    }
    let table_row = |day: String, tenant: &str, model: &str, numbers: NumberCells| {
        let tenant = has_tenants.then(|| sanitized_line(tenant, NAME_CHARS_MAX));
        let names = [day].into_iter().chain(tenant);
        TableRow {
            names: names
                .chain([sanitized_line(model, NAME_CHARS_MAX)])
                .collect(),
            numbers,
        }
    };
    let headers = NUMBER_HEADERS.map(str::to_owned);
    let mut table = vec![table_row("day".into(), "tenant", "model", headers)];
    table.extend(report.rows.iter().map(|row| {
        let numbers = number_cells(row.calls, row.failed, row.usage);
        table_row(row.day.to_string(), &row.tenant_id, &row.model, numbers)
    }));
    let totals = report.totals;
    let totals = number_cells(totals.calls, totals.failed, totals.usage);
    table.push(table_row("all".into(), "", "", totals));
    let last = table.len() - 1;
    let lines = aligned_lines(&table).into_iter().enumerate();
    let lines = lines.map(|(index, text)| match index {
        0 => color.tint(TextTone::Quiet, &text) + "\n",
        _ if index == last => color.tint(TextTone::Strong, &text) + "\n",
        _ => text + "\n",
    });
    lines.collect()
}

/// The width of the output: that of the narrowest usual terminal.
const WIDTH_MAX: usize = 80;

/// The cells of a row: day, tenant and model, then [`NUMBER_HEADERS`].
struct TableRow {
    names: Vec<String>,
    numbers: NumberCells,
}

/// The rows as text in columns: names aligned left, numbers aligned right.
fn aligned_lines(table: &[TableRow]) -> Vec<String> {
    let name_columns = table.first().map_or(0, |row| row.names.len());
    let name_widths = widths(table, name_columns, |row| &row.names);
    let number_widths = widths(table, NUMBER_HEADERS.len(), |row| &row.numbers);
    let cells = name_widths.iter().chain(&number_widths);
    let width = cells.sum::<usize>() + 2 * (name_columns + number_widths.len() - 1);
    let padded = |names: &[String]| {
        let cells = names.iter().zip(&name_widths);
        let cells = cells.map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ")
    };
    let aligned_line = |row: &TableRow| {
        let numbers = row.numbers.iter().zip(&number_widths);
        let numbers = numbers.map(|(cell, width)| format!("{cell:>width$}"));
        let numbers = numbers.collect::<Vec<_>>().join("  ");
        match width <= WIDTH_MAX {
            true => format!("{}  {numbers}", padded(&row.names)),
            false => format!("{}\n  {numbers}", folded(&row.names)),
        }
    };
    table.iter().map(aligned_line).collect()
}

/// The widths of the columns that `cells` has.
fn widths<'t>(
    table: &'t [TableRow],
    columns: usize,
    cells: impl Fn(&'t TableRow) -> &'t [String],
) -> Vec<usize> {
    let width = |column: usize| {
        let rows = table.iter();
        rows.map(|row| cells(row)[column].chars().count()).max()
    };
    (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect()
}

/// The names on a line of their own; the last one, the model, on the next if the line is too long.
fn folded(names: &[String]) -> String {
    let line = names.join("  ");
    match names.split_last() {
        Some((model, others)) if line.chars().count() > WIDTH_MAX => {
            format!("{}\n  {model}", others.join("  "))
        }
        _ => line.trim_end().to_owned(),
    }
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
            estimated: false,
        };
        let day = day.parse().expect("a day");
        UsageRow::new((day, TenantId(tenant), model.into()), (calls, 1, 0), usage)
    }

    fn report(rows: Vec<UsageRow>) -> UsageReport {
        let day = |text: &str| text.parse().expect("a day");
        UsageReport::new((day("2026-11-01"), day("2026-11-30")), rows)
    }

    #[test]
    fn table_has_a_line_per_row_and_the_total_below() {
        let rows = vec![
            row("2026-11-15", 0, "lo:a", 12, 0.0),
            row("2026-11-16", 0, "big:\u{1b}[31mon", 3, 1.25),
        ];
        let text = usage_table(&report(rows), false, ColorMode::Plain);
        let expected = "\
day         model   calls  failed  input  cached  output  reasoning     cost
2026-11-15  lo:a       12       1  12000       7      20          5  $0.0000
2026-11-16  big:on      3       1   3000       7      20          5  $1.2500
all                    15       2  15000      14      40         10  $1.2500
";
        assert_eq!(text, expected);
    }

    #[test]
    fn long_names_stand_on_a_line_of_their_own() {
        let model = "anthropic:claude-sonnet-4-5-20250929-some-long-suffix";
        let mut large = row("2026-11-15", 7, model, 12, 12_345.678_9);
        large.usage.input_tokens = 123_456_789_012;
        large.usage.output_tokens = 12_345_678;
        let rows = vec![large, row("2026-11-16", 7, "local:small", 3, 0.0)];
        let text = usage_table(&report(rows.clone()), false, ColorMode::Plain);
        let expected = "\
day  model
  calls  failed   input  cached  output  reasoning         cost
2026-11-15  anthropic:claude-sonnet-4-5-20250929-some-long-suffix
     12       1  123.5B       7   12.3M          5  $12345.6789
2026-11-16  local:small
      3       1    3000       7      20          5      $0.0000
all
     15       2  123.5B      14   12.3M         10  $12345.6789
";
        assert_eq!(text, expected);
        for has_tenants in [false, true] {
            let text = usage_table(&report(rows.clone()), has_tenants, ColorMode::Plain);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(80), "{text}");
        }
    }

    #[test]
    fn texts_that_no_model_wrote_are_not_listed() {
        let rows = vec![
            row("2026-11-15", 0, "template:en", 3, 0.0),
            row("2026-11-15", 0, "lo:a", 1, 0.5),
        ];
        let report = report(rows);
        assert_eq!(report.totals.calls, 1);
        let text = usage_table(&report, false, ColorMode::Plain);
        assert!(!text.contains("template"), "{text}");
    }

    #[test]
    fn tenants_have_a_column_if_there_can_be_several() {
        let rows = vec![row("2026-11-15", 1, "m", 1, 0.5)];
        let text = usage_table(&report(rows), true, ColorMode::Plain);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("day  tenant  model"));
        let first = lines.nth(1).expect("a row");
        let expected = "2026-11-15  00000000-0000-0000-0000-000000000001  m";
        assert_eq!(first, expected);
    }

    #[test]
    fn empty_report_is_a_sentence() {
        let text = usage_table(&report(Vec::new()), false, ColorMode::Plain);
        assert_eq!(text, "no model call ended from 2026-11-01 to 2026-11-30\n");
    }
}
