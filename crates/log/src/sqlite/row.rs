//! Row changes as SQL: what `event::fold` asked for, in the transaction of its event.

use rusqlite::{OptionalExtension as _, Transaction, params};
use turnwire_event::code::ToolState;
use turnwire_event::content::content_json;
use turnwire_event::row::{
    FinishedMessage, MessagePart, NewMessage, Placed, RowChange, SessionRow,
};
use turnwire_event::{
    ContentBlock, Epoch, EventType, Kept, MessageStatus, Role, Seq, SessionId, TurnId,
};

use crate::chain::Hash;
use crate::error::AppendError;
use crate::record::{Append, Term};
use crate::sqlite::approval;
use crate::sqlite::call;
use crate::sqlite::column::{json, word};
use crate::sqlite::connection::classify;
use crate::sqlite::messages::{SHARED, scope};
use crate::sqlite::queue;
use crate::sqlite::status;

/// Makes the session's row if this append brings it.
pub(crate) fn create_session(tx: &Transaction<'_>, part: &Append) -> rusqlite::Result<()> {
    for placed in &part.rows {
        if let RowChange::SessionPut(session) = &placed.change {
            insert_session(tx, session, part.term)?;
        }
    }
    Ok(())
}

fn insert_session(tx: &Transaction<'_>, s: &SessionRow, term: Term) -> rusqlite::Result<()> {
    // A deleted id makes the insert fail on the guard in the WHERE, and the append with it.
    tx.prepare_cached(
        "INSERT INTO session (id, tenant, principal, parent, workspace_path, metadata, episode_id, active_model, \
         routing_policy_version, cost_usd, turn_count, created_at, updated_at, epoch, term, low_seq, low_hash, agent) \
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0, ?16, ?17 \
         WHERE NOT EXISTS (SELECT 1 FROM tombstone WHERE id = ?1)",
    )?
    .execute(params![
        s.id.to_string(),
        s.owner.tenant.to_string(),
        s.owner.principal.as_str(),
        s.parent.map(|p| p.to_string()),
        s.workspace_path,
        json(&s.metadata),
        s.episode_id.to_string(),
        s.active_model,
        s.routing_policy_version,
        s.cost_usd,
        s.turn_count as i64,
        s.created_at.as_millis(),
        s.updated_at.as_millis(),
        Epoch::FIRST.0,
        term.0 as i64,
        &Hash::seed(s.id).0[..],
        s.agent,
    ])?;
    Ok(())
}

/// The row number and last event of a session that the writer has not seen yet.
pub(crate) fn find_session(
    tx: &Transaction<'_>,
    id: SessionId,
    term: Term,
) -> Result<(i64, Seq), AppendError> {
    let found: Option<(i64, i64, i64)> = tx
        .prepare_cached(
            "SELECT s.sid, s.term, coalesce((SELECT max(e.seq) FROM event e WHERE e.sid = s.sid), s.low_seq) \
             FROM session s WHERE s.id = ?1",
        )
        .and_then(|mut statement| {
            statement
                .query_row([id.to_string()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()
        })
        .map_err(|e| classify(&e))?;
    match found {
        None => Err(AppendError::Refused(format!("there is no session {id}"))),
        Some((_, stored, _)) if stored > term.0 as i64 => Err(AppendError::Fenced(id)),
        Some((sid, _, tail)) => Ok((sid, Seq(tail as u64))),
    }
}

/// About how many bytes a change writes.
pub(crate) fn weight(change: &RowChange) -> usize {
    let said = |content: &[ContentBlock]| -> usize {
        content
            .iter()
            .map(|b| b.as_text().map_or(256, str::len))
            .sum()
    };
    match change {
        RowChange::MessagePut(_, message) => said(&message.content) + kept_bytes(&message.kept),
        RowChange::MessagePart(part) => part.blocks.len() + part.cuts.len(),
        RowChange::MessageFinished(_, message) => {
            let inputs: usize = message.inputs.iter().map(|(_, raw)| 2 * raw.len()).sum();
            said(&message.content) + message.cuts.len() + inputs + kept_bytes(&message.kept)
        }
        RowChange::TurnEnded { payload, .. } => payload.len(),
        RowChange::TurnQueued { input, .. } => 256 + input.len(),
        RowChange::KeyPut { scope, .. } => 256 + scope.key.len(),
        RowChange::ApprovalPut { input_summary, .. } => 256 + input_summary.len(),
        RowChange::SessionPut(_)
        | RowChange::ApprovalResolved { .. }
        | RowChange::TurnStarted { .. }
        | RowChange::TurnCancelling(_)
        | RowChange::Routed { .. }
        | RowChange::PolicyReloaded(_)
        | RowChange::CostAdd(_)
        | RowChange::StatusCounted(_)
        | RowChange::ToolCall { .. } => 128,
        // Two rows and an index between them.
        RowChange::CallStarted { .. } | RowChange::CallEnded { .. } => 384,
    }
}

/// What a provider wants back, as its column has it.
fn kept(kept: &Kept) -> Option<String> {
    (!kept.is_empty()).then(|| json(kept))
}

fn kept_bytes(it: &Kept) -> usize {
    kept(it).map_or(0, |text| text.len())
}

/// Applies one change.
pub(crate) fn apply(tx: &Transaction<'_>, sid: i64, placed: &Placed) -> rusqlite::Result<()> {
    let time = placed.time.as_millis();
    match &placed.change {
        RowChange::SessionPut(_) => Ok(()), // made before the events; see `create_session`
        RowChange::TurnStarted { .. } => queue::start_turn(tx, sid, placed),
        RowChange::TurnQueued { .. } => queue::put_turn(tx, sid, placed),
        RowChange::KeyPut {
            scope,
            turn_id,
            body_sha256,
        } => queue::put_key(tx, sid, (scope, *turn_id, body_sha256), placed.time),
        RowChange::TurnCancelling(turn) => {
            tx.prepare_cached(
                "UPDATE turn SET state = 'cancelling' WHERE id = ?1 AND ended IS NULL",
            )?
            .execute([turn.to_string()])?;
            Ok(())
        }
        RowChange::TurnEnded {
            turn_id,
            terminal,
            payload,
        } => {
            let state = if *terminal == EventType::TurnCancelled {
                "cancelled"
            } else {
                "completed"
            };
            tx.prepare_cached(
                "UPDATE turn SET state = ?2, ended = ?3, ended_at = ?4, terminal_type = ?5, terminal = ?6 WHERE id = ?1",
            )?
            .execute(params![turn_id.to_string(), state, placed.at.to_string(), time, terminal.name(), payload])?;
            tx.prepare_cached("UPDATE session SET updated_at = ?2 WHERE sid = ?1")?
                .execute(params![sid, time])?;
            Ok(())
        }
        RowChange::Routed {
            turn_id,
            model,
            policy_version,
        } => {
            // The text of positions is in their order. Without a reload there is nothing to compare.
            tx.prepare_cached(
                "UPDATE session SET active_model = ?2, routing_policy_version = CASE \
                 WHEN policy_at > (SELECT started FROM turn WHERE id = ?4) \
                 THEN routing_policy_version ELSE ?3 END \
                 WHERE sid = ?1 AND (active_model <> ?2 OR routing_policy_version <> ?3)",
            )?
            .execute(params![sid, model, policy_version, turn_id.to_string()])?;
            Ok(())
        }
        RowChange::PolicyReloaded(version) => {
            tx.prepare_cached(
                "UPDATE session SET routing_policy_version = ?2, policy_at = ?3 WHERE sid = ?1",
            )?
            .execute(params![sid, version, placed.at.to_string()])?;
            Ok(())
        }
        RowChange::CallStarted { .. } => call::start(tx, sid, placed),
        RowChange::CallEnded {
            call_id,
            end,
            provider_response_id,
        } => {
            let theirs = provider_response_id.as_deref();
            call::end(tx, (*call_id, end), theirs, placed.time)
        }
        RowChange::CostAdd(usd) if *usd == 0.0 => Ok(()),
        RowChange::CostAdd(usd) => {
            tx.prepare_cached("UPDATE session SET cost_usd = cost_usd + ?2 WHERE sid = ?1")?
                .execute(params![sid, call::dollars(*usd)])?;
            Ok(())
        }
        RowChange::ApprovalPut { .. } | RowChange::ApprovalResolved { .. } => {
            approval::apply(tx, sid, placed)
        }
        RowChange::StatusCounted(event_id) => status::count(tx, event_id, placed.time),
        RowChange::MessagePut(turn, message) => put_message(tx, sid, *turn, message, placed),
        RowChange::MessagePart(part) => put_part(tx, sid, part),
        RowChange::MessageFinished(turn, message) => {
            finish_message(tx, sid, *turn, message, placed)
        }
        RowChange::ToolCall {
            tool_use_id,
            turn_id,
            tool_name,
            tool_type,
            status,
        } => put_tool_call(
            tx,
            sid,
            (
                &tool_use_id.to_string(),
                &turn_id.to_string(),
                tool_name,
                &word(tool_type),
            ),
            *status,
            time,
        ),
    }
}

fn put_message(
    tx: &Transaction<'_>,
    sid: i64,
    turn: TurnId,
    m: &NewMessage,
    placed: &Placed,
) -> rusqlite::Result<()> {
    let time = placed.time.as_millis();
    let at = placed.at.to_string();
    insert_message(tx)?.execute(params![
        m.id.to_string(),
        sid,
        turn.to_string(),
        word(&m.role),
        word(&MessageStatus::Complete),
        content_json(&m.content).0,
        None::<String>,
        None::<String>,
        None::<String>,
        json(&m.metadata),
        time,
        time,
        at,
        at,
        &[] as &[u8],
        "[]",
        scope(m),
        kept(&m.kept)
    ])?;
    Ok(())
}

fn insert_message<'a>(tx: &'a Transaction<'_>) -> rusqlite::Result<rusqlite::CachedStatement<'a>> {
    tx.prepare_cached(
        "INSERT INTO message (id, sid, turn, role, status, content, model, stop_reason, usage, metadata, \
         created_at, completed_at, started, completed, cuts, inputs, scope, kept) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
    )
}

fn finish_message(
    tx: &Transaction<'_>,
    sid: i64,
    turn: TurnId,
    m: &FinishedMessage,
    placed: &Placed,
) -> rusqlite::Result<()> {
    insert_message(tx)?.execute(params![
        m.id.to_string(),
        sid,
        turn.to_string(),
        word(&Role::Assistant),
        word(&m.status),
        content_json(&m.content).0,
        m.model,
        word(&m.stop_reason),
        json(&m.usage),
        "{}",
        m.started_at.as_millis(),
        placed.time.as_millis(),
        m.started.to_string(),
        placed.at.to_string(),
        m.cuts,
        json(&m.inputs),
        SHARED,
        kept(&m.kept)
    ])?;
    tx.prepare_cached("DELETE FROM message_part WHERE message = ?1")?
        .execute([m.id.to_string()])?;
    Ok(())
}

fn put_part(tx: &Transaction<'_>, sid: i64, part: &MessagePart) -> rusqlite::Result<()> {
    // A checkpoint taken just before its message became whole may arrive just after.
    tx.prepare_cached(
        "INSERT INTO message_part (message, part, sid, turn, model, started, started_at, blocks, cuts) \
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE NOT EXISTS (SELECT 1 FROM message WHERE id = ?1)",
    )?
    .execute(params![
        part.message_id.to_string(), part.index, sid, part.turn_id.to_string(), part.model,
        part.started.to_string(), part.started_at.as_millis(), part.blocks, part.cuts
    ])?;
    Ok(())
}

fn put_tool_call(
    tx: &Transaction<'_>,
    sid: i64,
    (id, turn, name, kind): (&str, &str, &str, &str),
    status: ToolState,
    time: i64,
) -> rusqlite::Result<()> {
    let started = matches!(status, ToolState::Running).then_some(time);
    let ended = matches!(
        status,
        ToolState::Completed | ToolState::Failed | ToolState::Cancelled
    )
    .then_some(time);
    tx.prepare_cached(
        "INSERT INTO tool_call (id, sid, turn, name, type, status, started_at, ended_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
         ON CONFLICT (id) DO UPDATE SET status = ?6, started_at = coalesce(started_at, ?7), ended_at = ?8",
    )?
    .execute(params![id, sid, turn, name, kind, word(&status), started, ended])?;
    Ok(())
}
