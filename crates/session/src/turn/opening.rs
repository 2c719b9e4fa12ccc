//! The `turn.started` event of a turn, the person's message, and the input that its producer reads.

use std::sync::Arc;

use turnwire_event::body::turn::{BoundVersions, TurnStarted};
use turnwire_event::code::TurnKind;
use turnwire_event::port::{ResumeInput, TurnInput};
use turnwire_event::row::{NewMessage, RowChange, TurnSettings};
use turnwire_event::{Actor, Body, MessageId, Role, TraceContext, TracePropagation, TurnId};
use turnwire_log::EventDraft;

use crate::live::session::LiveSession;
use crate::submit::request::SubmitRequest;

/// The kind of a turn in this session.
pub(crate) fn turn_kind(live: &LiveSession, request: &SubmitRequest) -> TurnKind {
    if live.depth > 0 {
        TurnKind::Worker
    } else {
        request.turn_kind()
    }
}

/// The [`TurnInput`] of a turn, for its producer.
pub(crate) fn turn_input(
    live: &LiveSession,
    turn_id: TurnId,
    request: &SubmitRequest,
    (trace, propagation): (Option<Arc<TraceContext>>, TracePropagation),
) -> TurnInput {
    let (agent, cost_usd, episode_id) =
        live.with_row(|row| (row.agent.clone(), row.cost_usd, row.episode_id));
    TurnInput {
        agent,
        resumed: None,
        session_id: live.id,
        turn_id,
        owner: live.owner.clone(),
        kind: turn_kind(live, request),
        cost_usd,
        locale: request.locale.clone(),
        content: request.content.clone(),
        metadata: request.metadata.clone(),
        location: request.location.clone(),
        episode_id,
        trace,
        propagation,
        turn_timeout: live.services.options.turn_timeout,
        dm_type: dm_label(request.dm_type.as_deref(), &live.services.options.dm_types).to_owned(),
    }
}

/// The kind of message as a label of metrics. A kind that is not in `dm_types` is `other`: a caller's
/// text would be a series of its own.
pub(crate) fn dm_label<'a>(dm_type: Option<&'a str>, dm_types: &[String]) -> &'a str {
    match dm_type {
        None => "",
        Some(name) if dm_types.iter().any(|counted| counted == name) => name,
        Some(_) => "other",
    }
}

/// The [`TurnSettings`] of a turn, for its row.
pub(crate) fn turn_settings(
    live: &LiveSession,
    turn_id: TurnId,
    request: &SubmitRequest,
) -> TurnSettings {
    TurnSettings {
        turn_id,
        kind: turn_kind(live, request),
        on_disconnect: request.on_disconnect,
        disconnect_grace_ms: request.disconnect_grace_ms,
        trace: request.trace.clone(),
        wire_version: Some(request.wire_version.clone()),
    }
}

/// The message of the person who submitted the turn.
pub(crate) fn user_message(live: &LiveSession, request: &SubmitRequest) -> NewMessage {
    let id = MessageId(live.services.id_generator.ulid());
    NewMessage {
        metadata: request.message_metadata(),
        ..NewMessage::new(id, Role::User, request.content.clone())
    }
}

/// The draft of `turn.started` with the rows of the turn and of `user` message. `omitted` is the
/// number of messages that the turn's history leaves out.
pub(crate) fn started_draft(
    live: &LiveSession,
    (turn, request): (TurnId, &SubmitRequest),
    user: NewMessage,
    omitted: u64,
    (versions, relayed_to): (BoundVersions, Option<String>),
    resumed: Option<&ResumeInput>,
) -> EventDraft {
    let settings = turn_settings(live, turn, request);
    let agent_definition = versions.agent_definition.clone();
    let resumes = resumed.map(|resumed| resumed.turn_id);
    let body = Body::TurnStarted(TurnStarted {
        answers: resumed.map_or_else(Vec::new, |resumed| resumed.answers.clone()),
        resumes,
        user_message_id: user.id,
        input: request.content.clone(),
        kind: settings.kind,
        origin: request.unattended_origin(),
        dm_type: request.dm_type.clone(),
        episode_id: live.with_row(|row| row.episode_id),
        locale: request.locale.clone(),
        wire_version: settings.wire_version.clone(),
        history_omitted: omitted,
        relayed_to,
        versions,
    });
    let mut draft = EventDraft::new(Some(turn), Actor::USER, body);
    draft.trace = request.trace.clone().map(Arc::new);
    draft.rows = vec![
        RowChange::TurnStarted {
            settings,
            agent_definition,
            resumes,
        },
        RowChange::MessagePut(turn, user),
    ];
    draft
}
