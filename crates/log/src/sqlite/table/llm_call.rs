//! The model call table and the usage by day: both written in the transaction of the call's events.

use rusqlite::{Connection, Row, Transaction, params};
use turnwire_event::code::CallState;
use turnwire_event::row::{LlmCallRow, ModelCallEnd, PlacedChange, RowChange};
use turnwire_event::{CallId, SessionId, TenantId, Timestamp, TokenUsage, UtcDay};

use crate::error::ReadError;
use crate::records::DailyUsage;
use crate::sqlite::column::{
    cursor, optional, optional_time, parsed, query_rows, time, value, word,
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
pub(crate) fn start(tx: &Transaction<'_>, sid: i64, placed: &PlacedChange) -> rusqlite::Result<()> {
    let RowChange::CallStarted {
        call_id,
        turn_id,
        actor,
        model,
        purpose,
        attempt,
    } = &placed.change
    else {
        return Ok(());
    };
    tx.prepare_cached(
        "INSERT INTO llm_call (id, sid, turn, actor, model, purpose, attempt, status, started_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
         ON CONFLICT (id) DO UPDATE SET model = ?5, purpose = ?6, attempt = ?7, status = ?8, \
         error_class = NULL, provider_response_id = NULL, started_at = ?9, ended_at = NULL \
         WHERE sid = ?2 AND turn = ?3 AND status = 'failed'",
    )?
    .execute(params![
        call_id.to_string(),
        sid,
        turn_id.to_string(),
        actor.to_string(),
        model,
        word(purpose),
        attempt,
        word(&CallState::Started),
        placed.time.as_millis()
    ])?;
    Ok(())
}

/// Writes the end of a call: adds it to the usage of the day, then closes its row. A call without an
/// open row is not counted.
pub(crate) fn end(
    tx: &Transaction<'_>,
    (call, end): (CallId, &ModelCallEnd),
    provider_response_id: Option<&str>,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let (status, usage) = match end {
        ModelCallEnd::Completed { usage, .. } => (CallState::Completed, *usage),
        ModelCallEnd::Failed(_) => (CallState::Failed, TokenUsage::default()),
    };
    let (error_class, stop_reason) = match end {
        ModelCallEnd::Completed { stop_reason, .. } => (None, Some(word(stop_reason))),
        ModelCallEnd::Failed(class) => (Some(word(class)), None),
    };
    let id = call.to_string();
    tx.prepare_cached(
        "INSERT INTO usage_day (day, tenant, model, calls, failed, input_tokens, output_tokens, \
         total_tokens, reasoning_tokens, cached_tokens, cost_usd) \
         SELECT ?2, s.tenant, c.model, 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9 \
         FROM llm_call c JOIN session s ON s.sid = c.sid WHERE c.id = ?1 AND c.status = 'started' \
         ON CONFLICT (tenant, day, model) DO UPDATE SET calls = calls + 1, \
         failed = failed + excluded.failed, input_tokens = input_tokens + excluded.input_tokens, \
         output_tokens = output_tokens + excluded.output_tokens, \
         total_tokens = total_tokens + excluded.total_tokens, \
         reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens, \
         cached_tokens = cached_tokens + excluded.cached_tokens, \
         cost_usd = cost_usd + excluded.cost_usd",
    )?
    .execute(params![
        id,
        UtcDay::of(at).to_string(),
        i64::from(status == CallState::Failed),
        clamp_tokens(usage.input_tokens),
        clamp_tokens(usage.output_tokens),
        clamp_tokens(usage.total_tokens),
        clamp_tokens(usage.reasoning_tokens),
        clamp_tokens(usage.cached_tokens),
        finite_usd(usage.cost_usd)
    ])?;
    tx.prepare_cached(
        "UPDATE llm_call SET status = ?2, error_class = ?3, stop_reason = ?4, input_tokens = ?5, \
         output_tokens = ?6, total_tokens = ?7, reasoning_tokens = ?8, cached_tokens = ?9, \
         cost_usd = ?10, provider_response_id = ?11, ended_at = ?12 \
         WHERE id = ?1 AND status = 'started'",
    )?
    .execute(params![
        id,
        word(&status),
        error_class,
        stop_reason,
        clamp_tokens(usage.input_tokens),
        clamp_tokens(usage.output_tokens),
        clamp_tokens(usage.total_tokens),
        clamp_tokens(usage.reasoning_tokens),
        clamp_tokens(usage.cached_tokens),
        finite_usd(usage.cost_usd),
        provider_response_id,
        at.as_millis()
    ])?;
    Ok(())
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column)
        .map(|count| u64::try_from(count).unwrap_or(0))
}

const SELECT: &str = "SELECT c.id, c.turn, c.actor, c.model, c.purpose, c.attempt, c.status, c.error_class, \
    c.stop_reason, c.input_tokens, c.output_tokens, c.total_tokens, c.reasoning_tokens, c.cached_tokens, \
    c.cost_usd, c.provider_response_id, c.started_at, c.ended_at \
    FROM llm_call c JOIN session s ON s.sid = c.sid";

fn read_call(row: &Row<'_>) -> rusqlite::Result<LlmCallRow> {
    let status: CallState = value(row, 6)?;
    let usage = TokenUsage {
        input_tokens: count(row, 9)?,
        output_tokens: count(row, 10)?,
        total_tokens: count(row, 11)?,
        reasoning_tokens: count(row, 12)?,
        cached_tokens: count(row, 13)?,
        cost_usd: row.get(14)?,
    };
    Ok(LlmCallRow {
        call_id: parsed(row, 0)?,
        turn_id: parsed(row, 1)?,
        actor: parsed(row, 2)?,
        model: row.get(3)?,
        purpose: value(row, 4)?,
        attempt: row.get(5)?,
        status,
        error_class: optional(row, 7)?,
        stop_reason: optional(row, 8)?,
        usage: (status == CallState::Completed).then_some(usage),
        provider_response_id: row.get(15)?,
        started_at: time(row, 16)?,
        ended_at: optional_time(row, 17)?,
    })
}

pub(crate) fn llm_calls(
    c: &Connection,
    session: SessionId,
    before: Option<CallId>,
    limit: usize,
) -> Result<Vec<LlmCallRow>, ReadError> {
    let sql = format!("{SELECT} WHERE s.id = ?1 AND c.id < ?2 ORDER BY c.id DESC LIMIT ?3");
    query_rows(
        c,
        &sql,
        params![session.to_string(), cursor(before), limit as i64],
        read_call,
    )
}

const SELECT_USAGE: &str = "SELECT day, tenant, model, calls, failed, input_tokens, output_tokens, \
    total_tokens, reasoning_tokens, cached_tokens, cost_usd FROM usage_day WHERE day BETWEEN ?1 AND ?2";

fn read_usage(row: &Row<'_>) -> rusqlite::Result<DailyUsage> {
    Ok(DailyUsage {
        day: parsed(row, 0)?,
        tenant: parsed(row, 1)?,
        model: row.get(2)?,
        calls: count(row, 3)?,
        failed: count(row, 4)?,
        usage: TokenUsage {
            input_tokens: count(row, 5)?,
            output_tokens: count(row, 6)?,
            total_tokens: count(row, 7)?,
            reasoning_tokens: count(row, 8)?,
            cached_tokens: count(row, 9)?,
            cost_usd: row.get(10)?,
        },
    })
}

pub(crate) fn daily_usage(
    c: &Connection,
    tenant: Option<TenantId>,
    (from, to): (UtcDay, UtcDay),
    limit: usize,
) -> Result<Vec<DailyUsage>, ReadError> {
    let (from, to, limit) = (from.to_string(), to.to_string(), limit as i64);
    match tenant {
        Some(tenant) => query_rows(
            c,
            &format!("{SELECT_USAGE} AND tenant = ?3 ORDER BY day, model LIMIT ?4"),
            params![from, to, tenant.to_string(), limit],
            read_usage,
        ),
        None => query_rows(
            c,
            &format!("{SELECT_USAGE} ORDER BY day, tenant, model LIMIT ?3"),
            params![from, to, limit],
            read_usage,
        ),
    }
}
