//! Row changes as SQL, applied in the transaction of their event.

use rusqlite::{Transaction, params};
use turnwire_event::ContentBlock;
use turnwire_event::row::{PlacedChange, RowChange};

use crate::sqlite::column::execute;
use crate::sqlite::table::{approval, key, llm_call, message, queue, status, tool_call, turn};

/// An estimate of the bytes that a [`RowChange`] writes.
pub(crate) fn byte_estimate(change: &RowChange) -> usize {
    let content_bytes = |content: &[ContentBlock]| -> usize {
        content
            .iter()
            .map(|b| b.as_text().map_or(256, str::len))
            .sum()
    };
    match change {
        RowChange::MessagePut(_, message) => {
            content_bytes(&message.content) + kept_bytes(&message.provider_state)
        }
        RowChange::MessagePart(part) => part.blocks.len() + part.cuts.len(),
        RowChange::MessageFinished(_, message) => {
            let inputs: usize = message.inputs.iter().map(|(_, raw)| 2 * raw.len()).sum();
            content_bytes(&message.content)
                + message.cuts.len()
                + inputs
                + kept_bytes(&message.provider_state)
        }
        RowChange::TurnEnded { payload, .. } => payload.len(),
        RowChange::TurnQueued { input, .. } => 256 + input.len(),
        RowChange::KeyPut { scope, .. } => 256 + scope.key.len(),
        RowChange::ApprovalPut(_, requested) => 384 + requested.input_summary.len(),
        RowChange::SessionPut(_)
        | RowChange::ApprovalResolved(_)
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

fn kept_bytes(kept: &turnwire_event::ProviderState) -> usize {
    message::kept_column(kept).map_or(0, |text| text.len())
}

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
        } => {
            // The text of positions sorts in their order. `policy_at` is NULL without a reload.
            let sql = "UPDATE session SET active_model = ?2, routing_policy_version = CASE \
                 WHEN policy_at > (SELECT started FROM turn WHERE id = ?4) \
                 THEN routing_policy_version ELSE ?3 END \
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
