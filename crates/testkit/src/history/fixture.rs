//! A generated session: a few turns of every kind as a correct server logs them, with the events
//! of both lanes and the deltas that a crash lost. Tests edit the events before or after clients
//! are generated from them, and the history checker must report exactly that edit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use turnwire_event::body::{feedback, llm, route, session, stream, tool, turn};
use turnwire_event::code::{CallPurpose, ErrorCode, ToolType, TurnKind, TurnStatus};
use turnwire_event::content::{content_json, sha256_hex};
use turnwire_event::fold::{CloseCause, CutList, OpenTurn, closing};
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, EpisodeId, Epoch, Event, MessageId, Position, Role, Seq,
    SessionId, StopReason, Sub, Timestamp, TokenUsage, ToolUseId, TurnId, Ulid,
};

use crate::rng::SeededRng;

/// The events of one generated session, in order, and the facts that only the server knows.
pub(super) struct SessionFixture {
    pub(super) rng: SeededRng,
    pub(super) session: SessionId,
    /// Both lanes in one order. The time of an event is its index, in milliseconds.
    pub(super) events: Vec<Event>,
    /// Deltas that a crash lost: sent to connected clients, not stored.
    pub(super) lost: BTreeSet<Position>,
    /// Tool results, which no event contains.
    pub(super) results: BTreeMap<ToolUseId, Vec<ContentBlock>>,
    /// How many clients request a snapshot.
    pub(super) snapshot_count: u32,
    /// For each kill, the number of events sent before it.
    pub(super) kills: Vec<usize>,
    open: Option<OpenTurn>,
    last: Position,
    ids: u128,
}

impl SessionFixture {
    /// One turn of every kind, in random order, with feedback after each.
    pub(super) fn new(seed: u64) -> Self {
        let mut fixture = Self {
            rng: SeededRng::new(seed),
            session: SessionId(Ulid(1)),
            events: Vec::new(),
            lost: BTreeSet::new(),
            results: BTreeMap::new(),
            snapshot_count: 4,
            kills: Vec::new(),
            open: None,
            last: Position::persisted(Epoch::FIRST, Seq(0)),
            ids: 1,
        };
        let episode_id = EpisodeId(fixture.id());
        fixture.emit(Body::SessionCreated(session::SessionCreated {
            workspace_path: None,
            episode_id,
        }));
        let mut kinds = [0, 1, 2, 3, 4];
        for at in (1..kinds.len()).rev() {
            kinds.swap(at, fixture.rng.index(at + 1));
        }
        for kind in kinds {
            fixture.turn(kind);
            let rating = "good".to_owned();
            fixture.emit(Body::FeedbackRecorded(feedback::FeedbackRecorded {
                message_id: None,
                turn_id: None,
                rating,
                comment: None,
            }));
        }
        fixture
    }

    fn id(&mut self) -> Ulid {
        self.ids += 1;
        Ulid(self.ids)
    }

    /// Appends an event at the next position of its lane.
    fn emit(&mut self, body: Body) {
        self.last = if body.kind().is_persisted() {
            Position::persisted(self.last.epoch, self.last.seq.next())
        } else {
            Position {
                sub: self.last.sub.next(),
                ..self.last
            }
        };
        self.push_event(self.last, body);
    }

    fn push_event(&mut self, id: Position, body: Body) {
        let timestamp = Timestamp::from_millis(self.events.len() as i64);
        if let Some(open) = &mut self.open {
            open.apply(id, timestamp, &Actor::ORCHESTRATOR, &body);
        }
        self.events.push(Event {
            response_id: None,
            id,
            session_id: self.session,
            turn_id: self.open.as_ref().map(|open| open.id),
            actor: Actor::ORCHESTRATOR,
            timestamp,
            trace: None,
            render: None,
            sub_agent_id: None,
            body,
        });
    }

    /// 0 plain, 1 with a tool, 2 cancelled in the model's stream, 3 cancelled in a tool, 4 killed.
    fn turn(&mut self, kind: u32) {
        self.open = Some(OpenTurn::new(TurnId(self.id())));
        let started = turn::TurnStarted {
            relayed_to: None,
            answers: Vec::new(),
            resumes: None,
            user_message_id: MessageId(self.id()),
            input: vec![ContentBlock::text(format!("kind {kind}"))],
            kind: TurnKind::Chat,
            origin: None,
            dm_type: None,
            episode_id: EpisodeId(Ulid(2)),
            locale: "en".into(),
            wire_version: None,
            history_omitted: 0,
            versions: turn::BoundVersions::default(),
        };
        self.emit(Body::TurnStarted(started));
        self.emit(Body::RouteDecided(route::RouteDecided {
            relayed: None,
            model: "scripted:demo".into(),
            routing_policy_version: "1".into(),
            reason: "default".into(),
            candidates: Vec::new(),
        }));
        match kind {
            0 => self.call(StopReason::EndTurn),
            1 => {
                let tool = self.call_for_tool();
                self.complete_tool(tool);
                self.call(StopReason::EndTurn);
            }
            2 => {
                self.stream();
                self.cancel();
            }
            3 => {
                self.call_for_tool();
                self.cancel();
            }
            _ => {
                self.stream();
                self.kill();
            }
        }
        if kind < 2 {
            let usage = self
                .open
                .as_ref()
                .map_or_else(TokenUsage::default, |open| open.usage);
            self.emit(Body::TurnCompleted(turn::TurnCompleted {
                status: TurnStatus::Ok,
                usage,
                error: None,
                reason: None,
                partial: None,
                paused: None,
            }));
        }
        self.open = None;
    }

    /// A model call whose message streams but does not end.
    fn stream(&mut self) -> (CallId, MessageId) {
        let (call_id, message_id) = (CallId(self.id()), MessageId(self.id()));
        self.emit(Body::LlmCallStarted(llm::CallStarted {
            call_id,
            model: "scripted:demo".into(),
            purpose: CallPurpose::Orchestrate,
            attempt: 1,
            first: true,
        }));
        let model = "scripted:demo".to_owned();
        self.emit(Body::MessageStart(stream::MessageStart {
            message_id,
            role: Role::Assistant,
            model,
        }));
        for _ in 0..self.rng.between(4, 12) {
            let text = format!("word{} ", self.rng.between(0, 1_000));
            self.emit(Body::TextDelta(stream::TextDelta {
                message_id,
                content_block_index: 0,
                text,
            }));
        }
        (call_id, message_id)
    }

    fn finish(&mut self, (call_id, message_id): (CallId, MessageId), stop_reason: StopReason) {
        let usage = TokenUsage {
            output_tokens: 7,
            total_tokens: 7,
            cost_usd: 0.25,
            ..TokenUsage::default()
        };
        let fold = self
            .open
            .as_ref()
            .and_then(|open| open.message.as_ref())
            .expect("a message is open");
        let end = fold.complete(stop_reason, usage);
        let content_sha256 = content_json(&end.final_content).1;
        self.emit(Body::MessageComplete(end));
        self.emit(Body::LlmCallCompleted(llm::CallCompleted {
            call_id,
            message_id,
            content_sha256,
            stop_reason,
            usage,
        }));
    }

    fn call(&mut self, stop_reason: StopReason) {
        let ids = self.stream();
        self.finish(ids, stop_reason);
    }

    fn call_for_tool(&mut self) -> ToolUseId {
        let ids = self.stream();
        let (message_id, tool_use_id) = (ids.1, ToolUseId(self.id()));
        let content_block_index = 1;
        let tool_name = "echo".to_owned();
        self.emit(Body::ToolUseStart(stream::ToolUseStart {
            message_id,
            content_block_index,
            tool_use_id,
            tool_name: tool_name.clone(),
        }));
        for partial_json in ["{\"a\"", ":1}"] {
            let partial_json = partial_json.to_owned();
            self.emit(Body::ToolUseInputDelta(stream::ToolUseInputDelta {
                message_id,
                content_block_index,
                tool_use_id,
                partial_json,
            }));
        }
        let final_input = json!({"a": 1});
        self.emit(Body::ToolUseEnd(stream::ToolUseEnd {
            message_id,
            content_block_index,
            tool_use_id,
            final_input,
        }));
        self.finish(ids, StopReason::ToolUse);
        self.emit(Body::ToolCalled(tool::ToolCalled {
            upstream_id: None,
            tool_use_id,
            tool_name,
            tool_type: ToolType::Function,
            input_summary: String::new(),
        }));
        tool_use_id
    }

    fn complete_tool(&mut self, tool_use_id: ToolUseId) {
        let result = json!({"a": 1});
        let content = vec![ContentBlock::ToolResult {
            tool_use_id,
            content: result.clone(),
            is_error: false,
        }];
        let result_sha256 = sha256_hex(result.to_string().as_bytes());
        self.results.insert(tool_use_id, content);
        self.emit(Body::ToolCompleted(tool::ToolCompleted {
            upstream_id: None,
            tool_use_id,
            tool_name: "echo".into(),
            tool_type: ToolType::Function,
            duration_ms: 1,
            result_summary: String::new(),
            result_sha256,
        }));
    }

    fn close(&mut self, end: &CloseCause) {
        let open = self.open.clone().expect("a turn is open");
        let now = Timestamp::from_millis(self.events.len() as i64);
        for part in closing(&open, end, &[], now) {
            let swept = matches!(end, CloseCause::Failed { .. })
                && matches!(part.body, Body::MessageComplete(_));
            if swept {
                self.push_event(
                    Position {
                        sub: Sub::LAST,
                        ..self.last
                    },
                    part.body,
                );
            } else {
                self.emit(part.body);
            }
        }
    }

    fn cancel(&mut self) {
        let reason = "user_cancel".to_owned();
        self.emit(Body::TurnCancelRequested(turn::CancelRequested::new(
            "user",
            reason.clone(),
        )));
        let requested_at = Timestamp::from_millis(self.events.len() as i64);
        self.close(&CloseCause::Cancelled {
            code: turnwire_event::code::CancelCode::RequestCancelled,
            stops: None,
            reason,
            asked: requested_at,
        });
    }

    /// Kills the process before the last two deltas are stored; crash recovery ends the turn.
    fn kill(&mut self) {
        self.kills.push(self.events.len());
        let lost: Vec<Position> = self.events.iter().rev().take(2).map(|e| e.id).collect();
        self.lost.extend(&lost);
        if let Some(fold) = self.open.as_mut().and_then(|open| open.message.as_mut()) {
            let mut kept = CutList::new((fold.started, fold.started_at));
            kept.extend(fold.cuts.iter().filter(|cut| !lost.contains(&cut.at)));
            fold.cuts = kept;
            let stored_len = fold.cuts.last().map_or(0, |cut| cut.end as usize);
            for block in &mut fold.blocks {
                if let turnwire_event::fold::message::BlockFold::Text(text) = block {
                    text.truncate(stored_len);
                }
            }
        }
        let error = turn::TurnError::from(ErrorCode::InternalError);
        self.close(&CloseCause::Failed {
            error,
            reason: Some("server_restart".into()),
        });
    }
}
