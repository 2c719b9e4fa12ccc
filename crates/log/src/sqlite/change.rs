//! Row changes as SQL, applied in the transaction of their event.

use rusqlite::{Transaction, params};
use turnwire_event::row::{PlacedChange, RowChange};

use crate::sqlite::column::execute;
use crate::sqlite::table::{
    approval, audit, key, llm_call, message, queue, status, tool_call, turn,
};

/// Applies one [`RowChange`] to the rows of the session `sid`.
pub(crate) fn apply(tx: &Transaction<'_>, sid: i64, placed: &PlacedChange) -> rusqlite::Result<()> {
    match &placed.change {
        RowChange::SessionPut(_) => Ok(()), // written before the events; see `session::create`
        RowChange::TurnStarted {
            settings,
            agent_definition,
            resumes,
        } => turn::start(tx, sid, (settings, agent_definition, *resumes), placed),
        RowChange::TurnQueued {
            settings,
            place,
            input,
        } => queue::put(tx, sid, (settings, *place, input), placed),
        RowChange::KeyPut {
            scope,
            turn_id,
            body_sha256,
        } => key::put(tx, sid, (scope, *turn_id, body_sha256), placed.time),
        RowChange::AuditAdded(entry) => audit::add(tx, entry),
        RowChange::TurnCancelling(turn) => turn::cancel(tx, *turn),
        RowChange::TurnEnded {
            turn_id,
            terminal,
            payload,
        } => turn::end(tx, sid, (*turn_id, *terminal, payload), placed),
        RowChange::Routed {
            turn_id,
            model,
            policy_version,
            response_id,
        } => {
            if let Some(id) = response_id {
                turn::put_response_id(tx, *turn_id, id)?;
            }
            // The text of positions sorts in their order. `policy_at` is NULL without a reload.
            let sql = "UPDATE session SET active_model = ?2, routing_policy_version = CASE \
                 WHEN policy_at > (SELECT started FROM turn WHERE id = ?4) \
                 THEN routing_policy_version ELSE coalesce(?3, routing_policy_version) END \
                 WHERE sid = ?1 AND (active_model <> ?2 OR routing_policy_version <> ?3)";
            let values = params![sid, model, policy_version, turn_id.to_string()];
            execute(tx, sql, values).map(drop)
        }
        RowChange::PolicyReloaded(version) => {
            let sql =
                "UPDATE session SET routing_policy_version = ?2, policy_at = ?3 WHERE sid = ?1";
            execute(tx, sql, params![sid, version, placed.at.to_string()]).map(drop)
        }
        RowChange::CallStarted {
            turn_id,
            actor,
            call,
        } => llm_call::start(tx, sid, (*turn_id, actor, call), placed.time),
        RowChange::CallEnded {
            call_id,
            end,
            provider_response_id,
        } => {
            let response_id = provider_response_id.as_deref();
            llm_call::end(tx, (*call_id, end), response_id, placed.time)
        }
        RowChange::CostAdd(usd) if *usd == 0.0 => Ok(()),
        RowChange::CostAdd(usd) => {
            let sql = "UPDATE session SET cost_usd = cost_usd + ?2 WHERE sid = ?1";
            execute(tx, sql, params![sid, llm_call::finite_usd(*usd)]).map(drop)
        }
        RowChange::ApprovalPut(turn, requested) => {
            approval::put(tx, sid, (*turn, requested), placed.time)
        }
        RowChange::ApprovalResolved(resolved) => approval::resolve(tx, resolved, placed.time),
        RowChange::StatusCounted(event_id) => status::add(tx, event_id, placed.time),
        RowChange::MessagePut(turn, new) => message::put(tx, sid, *turn, new, placed),
        RowChange::MessagePart(part) => message::put_checkpoint(tx, sid, part),
        RowChange::MessageFinished(turn, finished) => {
            message::finish(tx, sid, *turn, finished, placed)
        }
        RowChange::ToolCall { .. } => tool_call::put(tx, sid, placed),
    }
}
