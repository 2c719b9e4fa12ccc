//! The model call table and the usage by day: both written in the transaction of the call's events.

use rusqlite::{Connection, Row, ToSql, Transaction, params};
use turnwire_event::body::llm::CallStarted;
use turnwire_event::code::CallState;
use turnwire_event::row::{LlmCallRow, ModelCallEnd};
use turnwire_event::{Actor, CallId, Owner, Timestamp, TokenUsage, TurnId, UtcDay};

use crate::records::{DailyUsage, UsageOn, UsageSum};
use crate::sqlite::column::{
    SelectRow, code_name, count, execute, optional, optional_time, parsed, query_value, time, value,
};

/// The maximum number of tokens that is counted for one call. No model reads or writes a thousandth
/// of it, and the sum over eight million such calls still fits an integer column.
const TOKENS_MAX: u64 = 1 << 40;

fn clamp_tokens(count: u64) -> i64 {
    count.min(TOKENS_MAX) as i64
}

/// A cost as its column takes it: NaN and infinity are 0, as they would make the row unwritable.
pub(crate) fn finite_usd(usd: f64) -> f64 {
    if usd.is_finite() { usd } else { 0.0 }
}

/// Writes the start of a call. A failed call that is retried with the same id keeps its row, which
/// then shows the newest attempt; every attempt that ended is in the usage.
pub(crate) fn start(
    tx: &Transaction<'_>,
    sid: i64,
    (turn, actor, call): (TurnId, &Actor, &CallStarted),
    at: Timestamp,
) -> rusqlite::Result<()> {
    execute(
        tx,
        "INSERT INTO llm_call (id, sid, turn, actor, model, purpose, attempt, status, started_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
         ON CONFLICT (id) DO UPDATE SET model = ?5, purpose = ?6, attempt = ?7, status = ?8, \
         error_class = NULL, provider_response_id = NULL, started_at = ?9, ended_at = NULL \
         WHERE sid = ?2 AND turn = ?3 AND status = 'failed'",
        params![
            call.call_id.to_string(),
            sid,
            turn.to_string(),
            actor.to_string(),
            call.model,
            code_name(&call.purpose),
            call.attempt,
            code_name(&CallState::Started),
            at.as_millis()
        ],
    )
    .map(drop)
}

/// Writes the end of a call: closes its row, then adds the row to the usage of the day. A call
/// without an open row is not counted.
pub(crate) fn end(
    tx: &Transaction<'_>,
    (call, end): (CallId, &ModelCallEnd),
    provider_response_id: Option<&str>,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let (status, error_class, stop_reason, usage) = match end {
        ModelCallEnd::Completed { stop_reason, usage } => (
            CallState::Completed,
            None,
            Some(code_name(stop_reason)),
            *usage,
        ),
        ModelCallEnd::Failed { error_class, usage } => (
            CallState::Failed,
            Some(code_name(error_class)),
            None,
            *usage,
        ),
    };
    let id = call.to_string();
    let closed = execute(
        tx,
        "UPDATE llm_call SET status = ?2, error_class = ?3, stop_reason = ?4, input_tokens = ?5, \
         output_tokens = ?6, total_tokens = ?7, reasoning_tokens = ?8, cached_tokens = ?9, \
         cost_usd = ?10, provider_response_id = ?11, ended_at = ?12, estimated = ?13 \
         WHERE id = ?1 AND status = 'started'",
        params![
            id,
            code_name(&status),
            error_class,
            stop_reason,
            clamp_tokens(usage.input_tokens),
            clamp_tokens(usage.output_tokens),
            clamp_tokens(usage.total_tokens),
            clamp_tokens(usage.reasoning_tokens),
            clamp_tokens(usage.cached_tokens),
            finite_usd(usage.cost_usd),
            provider_response_id,
            at.as_millis(),
            usage.estimated
        ],
    )?;
    if closed == 0 {
        return Ok(());
    }
    let day = UtcDay::of(at).to_string();
    execute(
        tx,
        "INSERT INTO usage_day (day, tenant, model, calls, failed, stopped, input_tokens, \
         output_tokens, total_tokens, reasoning_tokens, cached_tokens, cost_usd, estimated) \
         SELECT ?2, s.tenant, c.model, 1, c.status = 'failed' AND c.error_class <> 'cancelled', \
         c.status = 'failed' AND c.error_class = 'cancelled', c.input_tokens, c.output_tokens, \
         c.total_tokens, c.reasoning_tokens, c.cached_tokens, c.cost_usd, c.estimated \
         FROM llm_call c JOIN session s ON s.sid = c.sid WHERE c.id = ?1 \
         ON CONFLICT (tenant, day, model) DO UPDATE SET calls = calls + 1, \
         failed = failed + excluded.failed, stopped = stopped + excluded.stopped, \
         estimated = max(estimated, excluded.estimated), \
         input_tokens = input_tokens + excluded.input_tokens, \
         output_tokens = output_tokens + excluded.output_tokens, \
         total_tokens = total_tokens + excluded.total_tokens, \
         reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens, \
         cached_tokens = cached_tokens + excluded.cached_tokens, \
         cost_usd = cost_usd + excluded.cost_usd",
        [&id, &day],
    )?;
    if usage.total_tokens == 0 && finite_usd(usage.cost_usd) == 0.0 {
        return Ok(());
    }
    execute(
        tx,
        "INSERT INTO usage_principal (day, tenant, principal, total_tokens, cost_usd) \
         SELECT ?2, s.tenant, s.principal, c.total_tokens, c.cost_usd \
         FROM llm_call c JOIN session s ON s.sid = c.sid WHERE c.id = ?1 \
         ON CONFLICT (day, tenant, principal) DO UPDATE SET \
         total_tokens = total_tokens + excluded.total_tokens, \
         cost_usd = cost_usd + excluded.cost_usd",
        [&id, &day],
    )
    .map(drop)
}

/// Reads what the calls of `owner` and of its tenant came to on `day`.
pub(crate) fn usage_on(c: &Connection, owner: &Owner, day: UtcDay) -> rusqlite::Result<UsageOn> {
    let read = |source: &str, values: &[&dyn ToSql]| {
        let sums = "SELECT ifnull(sum(total_tokens), 0), total(cost_usd) FROM";
        let mut query = c.prepare_cached(&format!("{sums} {source}"))?;
        query.query_row(values, |row| {
            Ok(UsageSum {
                tokens: count(row, 0)?,
                cost_usd: row.get(1)?,
            })
        })
    };
    let (day, tenant) = (day.to_string(), owner.tenant.to_string());
    Ok(UsageOn {
        principal: read(
            "usage_principal WHERE day = ?1 AND tenant = ?2 AND principal = ?3",
            &[&day, &tenant, &owner.principal.as_str()],
        )?,
        tenant: read("usage_day WHERE tenant = ?2 AND day = ?1", &[&day, &tenant])?,
    })
}

/// Removes the rows of principals of days before `before`, at most `max`. Writes nothing if there is none.
pub(crate) fn expire_usage(c: &Connection, before: UtcDay, max: usize) -> rusqlite::Result<usize> {
    let before = before.to_string();
    let due = "SELECT EXISTS (SELECT 1 FROM usage_principal WHERE day < ?1)";
    if !query_value(c, due, [&before])? {
        return Ok(0);
    }
    execute(
        c,
        "DELETE FROM usage_principal WHERE (day, tenant, principal) IN \
         (SELECT day, tenant, principal FROM usage_principal WHERE day < ?1 ORDER BY day LIMIT ?2)",
        params![before, max as i64],
    )
}

/// Reads a usage from seven columns, the first at `first`.
fn read_usage(row: &Row<'_>, first: usize) -> rusqlite::Result<TokenUsage> {
    Ok(TokenUsage {
        input_tokens: count(row, first)?,
        output_tokens: count(row, first + 1)?,
        total_tokens: count(row, first + 2)?,
        reasoning_tokens: count(row, first + 3)?,
        cached_tokens: count(row, first + 4)?,
        cost_usd: row.get(first + 5)?,
        estimated: row.get(first + 6)?,
    })
}

impl SelectRow for LlmCallRow {
    const SELECT: &str = "SELECT c.id, c.turn, c.actor, c.model, c.purpose, c.attempt, c.status, c.error_class, \
        c.stop_reason, c.input_tokens, c.output_tokens, c.total_tokens, c.reasoning_tokens, c.cached_tokens, \
        c.cost_usd, c.estimated, c.provider_response_id, c.started_at, c.ended_at \
        FROM llm_call c JOIN session s ON s.sid = c.sid";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let status: CallState = value(row, 6)?;
        let usage = read_usage(row, 9)?;
        Ok(Self {
            call_id: parsed(row, 0)?,
            turn_id: parsed(row, 1)?,
            actor: parsed(row, 2)?,
            model: row.get(3)?,
            purpose: value(row, 4)?,
            attempt: row.get(5)?,
            status,
            error_class: optional(row, 7)?,
            stop_reason: optional(row, 8)?,
            // A failed call that used nothing has no usage.
            usage: (status == CallState::Completed || !usage.is_zero()).then_some(usage),
            provider_response_id: row.get(16)?,
            started_at: time(row, 17)?,
            ended_at: optional_time(row, 18)?,
        })
    }
}

impl SelectRow for DailyUsage {
    const SELECT: &str = "SELECT day, tenant, model, calls, failed, stopped, input_tokens, output_tokens, \
        total_tokens, reasoning_tokens, cached_tokens, cost_usd, estimated FROM usage_day";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            day: parsed(row, 0)?,
            tenant: parsed(row, 1)?,
            model: row.get(2)?,
            calls: count(row, 3)?,
            failed: count(row, 4)?,
            stopped: count(row, 5)?,
            usage: read_usage(row, 6)?,
        })
    }
}
