//! The `turn.started` event of a turn, the person's message, and the input that its producer reads.

use std::sync::Arc;

use turnwire_event::body::turn::{BoundVersions, TurnStarted};
use turnwire_event::code::TurnKind;
use turnwire_event::port::{ResumeInput, TurnInput};
use turnwire_event::row::{MessageScope, NewMessage, RowChange};
use turnwire_event::{
    Actor, Body, EpisodeId, Message, MessageId, MessageStatus, Role, TraceContext, TurnId,
};
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

/// The input of a turn for its producer.
pub(crate) fn turn_input(
    live: &LiveSession,
    turn_id: TurnId,
    request: &SubmitRequest,
    trace: Option<Arc<TraceContext>>,
) -> TurnInput {
    TurnInput {
        agent: live
            .ring
            .with_state(|transcript, _, _| transcript.row.agent.clone()),
        resumed: None,
        session_id: live.id,
        turn_id,
        owner: live.owner.clone(),
        kind: turn_kind(live, request),
        cost_usd: live
            .ring
            .with_state(|transcript, _, _| transcript.row.cost_usd),
        locale: request.locale.clone(),
        content: request.content.clone(),
        metadata: request.metadata.clone(),
        location: request.location.clone(),
        episode_id: episode(live),
        trace,
        turn_timeout: live.services.options.turn_timeout,
    }
}

fn episode(live: &LiveSession) -> EpisodeId {
    live.ring
        .with_state(|transcript, _, _| transcript.row.episode_id)
}

/// The message of the person who submitted the turn.
pub(crate) fn user_message(
    live: &LiveSession,
    turn_id: TurnId,
    request: &SubmitRequest,
) -> Message {
    Message {
        provider_state: turnwire_event::ProviderState::default(),
        id: MessageId(live.services.mint.ulid()),
        session_id: live.id,
        turn_id,
        role: Role::User,
        status: MessageStatus::Complete,
        content: request.content.clone(),
        model: None,
        stop_reason: None,
        usage: None,
        created_at: live.services.clock.now(),
        metadata: request.message_metadata(),
    }
}

/// The draft of `turn.started` with the rows of the turn and of `user` message. `omitted` is the
/// number of messages that the turn's history leaves out.
pub(crate) fn started_draft(
    live: &LiveSession,
    request: &SubmitRequest,
    user: &Message,
    omitted: u64,
    versions: BoundVersions,
    resumed: Option<&ResumeInput>,
) -> EventDraft {
    let turn = user.turn_id;
    let agent_definition = versions.agent_definition.clone();
    let wire_version = Some(request.wire_version.clone());
    let body = Body::TurnStarted(TurnStarted {
        answers: resumed.map_or_else(Vec::new, |resumed| resumed.answers.clone()),
        resumes: resumed.map(|resumed| resumed.turn_id),
        user_message_id: user.id,
        input: request.content.clone(),
        kind: turn_kind(live, request),
        origin: request.unattended_origin(),
        dm_type: request.dm_type.clone(),
        episode_id: episode(live),
        locale: request.locale.clone(),
        wire_version: wire_version.clone(),
        history_omitted: omitted,
        versions,
    });
    let mut draft = EventDraft::new(Some(turn), Actor::USER, body);
    draft.trace = request.trace.clone().map(Arc::new);
    draft.rows = vec![
        RowChange::TurnStarted {
            turn_id: turn,
            kind: turn_kind(live, request),
            on_disconnect: request.on_disconnect,
            disconnect_grace_ms: request.disconnect_grace_ms,
            trace: request.trace.clone(),
            wire_version,
            agent_definition,
            resumes: resumed.map(|resumed| resumed.turn_id),
        },
        RowChange::MessagePut(
            turn,
            NewMessage {
                provider_state: turnwire_event::ProviderState::default(),
                id: user.id,
                role: Role::User,
                content: user.content.clone(),
                metadata: user.metadata.clone(),
                scope: MessageScope::Shared,
            },
        ),
    ];
    draft
}
