//! Random turns and texts: the invariants hold for them too, and no text breaks a block.

use proptest::prelude::*;
use serde_json::json;
use turnwire_event::body::component::{ComponentRendered, RenderingToolCall};
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::body::stream::{TextDelta, ThinkingDelta};
use turnwire_event::body::tool::ToolCalled;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{
    AgentErrorClass, CancelCode, DispatchOutcome, ErrorCode, Phase, Reason, SlotStatus, StepStatus,
    ToolErrorClass, ToolType, TurnStatus,
};
use turnwire_event::fold::CloseCause;
use turnwire_event::{
    Actor, Body, Event, MessageId, RenderDecision, RenderPolicy, StopReason, ToolUseId, Ulid,
};
use turnwire_wire::pc3::WireVersion;

use super::{frames, invariants, items, resume, stream, turns};
use crate::scenario::subagents::RunningSubagent;
use crate::scenario::{LogBuilder, invariants as event_invariants};

/// An event that a sub-agent emits while it works.
#[derive(Clone, Debug)]
enum Emission {
    Status(String, RenderPolicy),
    Grouped(Vec<String>),
    Data(u8),
    Card(String),
}

/// How a sub-agent ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SubagentEnd {
    Answers,
    LacksData,
    Fails,
}

/// A content block of a message.
#[derive(Clone, Debug)]
enum MessageBlock {
    Text(Vec<String>),
    Thinking(Vec<String>, bool),
    Tool(String, ToolOutcome),
}

#[derive(Clone, Copy, Debug)]
enum ToolOutcome {
    Completed,
    Failed,
    Refused,
}

#[derive(Clone, Copy, Debug)]
enum TurnEnding {
    Done(TurnStatus),
    Failed(ErrorCode),
    Cancelled,
    CutShort,
    Idle,
    Swept,
}

fn any_block() -> impl Strategy<Value = MessageBlock> {
    let pieces = || prop::collection::vec(".{0,6}", 0..4);
    let outcome = prop::sample::select(vec![
        ToolOutcome::Completed,
        ToolOutcome::Failed,
        ToolOutcome::Refused,
    ]);
    prop_oneof![
        pieces().prop_map(MessageBlock::Text),
        (pieces(), any::<bool>())
            .prop_map(|(pieces, signed)| MessageBlock::Thinking(pieces, signed)),
        ("[a-z_]{1,8}", outcome).prop_map(|(name, outcome)| MessageBlock::Tool(name, outcome)),
    ]
}

fn any_emission() -> impl Strategy<Value = Emission> {
    let policy = prop::sample::select(vec![
        RenderPolicy::Forward,
        RenderPolicy::Transform,
        RenderPolicy::Suppress,
        RenderPolicy::Batch,
    ]);
    prop_oneof![
        (".{1,6}", policy).prop_map(|(words, policy)| Emission::Status(words, policy)),
        prop::collection::vec(".{1,6}", 1..4).prop_map(Emission::Grouped),
        (0..4u8).prop_map(Emission::Data),
        ".{0,6}".prop_map(Emission::Card),
    ]
}

/// The sub-agents of one dispatch; empty if there is no dispatch.
fn any_dispatch() -> impl Strategy<Value = Vec<(SubagentEnd, Vec<Emission>)>> {
    let end = prop::sample::select(vec![
        SubagentEnd::Answers,
        SubagentEnd::LacksData,
        SubagentEnd::Fails,
    ]);
    let emissions = prop::collection::vec(any_emission(), 0..4);
    prop::collection::vec((end, emissions), 0..4)
}

fn show(log: &mut LogBuilder, helper: RunningSubagent, emissions: &Emission, counter: &mut u32) {
    *counter += 1;
    let place = format!("data_{counter}");
    match emissions {
        Emission::Status(words, policy) => {
            log.status(helper, ("busy", words), RenderDecision::from(*policy));
        }
        Emission::Grouped(all) => {
            for (at, words) in all.iter().enumerate() {
                let last = at + 1 == all.len();
                let render = RenderDecision {
                    policy: RenderPolicy::Batch,
                    group: Some(*counter),
                    message: last.then(|| all.join(" and ")),
                    event_ids: vec!["busy".into(); if last { all.len() } else { 0 }],
                };
                log.status(helper, ("busy", words), render);
            }
        }
        Emission::Data(items) => {
            let ids = &["a", "b", "c"][..usize::from(*items).min(3)];
            let items: Vec<_> = ids.iter().map(|id| (*id, "x")).collect();
            log.loading(helper, &place, ids);
            log.loaded(helper, &place, &items);
        }
        Emission::Card(title) => {
            let card = log.uses("render_card", ToolType::Render);
            log.component(helper, card, json!({ "title": title }));
            log.tool_done(card, "render_card", ToolType::Render);
        }
    }
}

/// Starts sub-agents, lets them work and ends them.
fn fan_out(log: &mut LogBuilder, agents: &[(SubagentEnd, Vec<Emission>)], counter: &mut u32) {
    let names = &["shop", "rewards", "support"][..agents.len()];
    let (mut slots, mut failed) = (Vec::new(), Vec::new());
    for (helper, (end, emissions)) in log.ask(names).into_iter().zip(agents) {
        log.calls_model(helper);
        emissions
            .iter()
            .for_each(|emissions| show(log, helper, emissions, counter));
        let error = match end {
            SubagentEnd::Answers => {
                log.answers(helper, DispatchOutcome::Success);
                slots.push((helper, SlotStatus::Success));
                continue;
            }
            SubagentEnd::LacksData => {
                log.answers(helper, DispatchOutcome::StatusError);
                TurnError::envelope("offer_feed", Reason::UpstreamPartial)
            }
            SubagentEnd::Fails => {
                log.fails(helper, AgentErrorClass::Internal);
                TurnError::sub_agent(helper.id)
            }
        };
        slots.push((helper, SlotStatus::Error));
        log.report_failure(Some(helper), error.clone());
        failed.push(error);
    }
    log.step_done(StepStatus::PartialFailure, &slots);
    if !failed.is_empty() {
        log.report_failure(None, TurnError::fan_out(failed));
    }
}

fn any_ending() -> impl Strategy<Value = TurnEnding> {
    prop::sample::select(vec![
        TurnEnding::Done(TurnStatus::Ok),
        TurnEnding::Done(TurnStatus::Degraded),
        TurnEnding::Done(TurnStatus::Paused),
        TurnEnding::Failed(ErrorCode::InternalError),
        TurnEnding::Failed(ErrorCode::RateLimitError),
        TurnEnding::Failed(ErrorCode::SubAgentFailed),
        TurnEnding::Failed(ErrorCode::CcsEnvelopeError),
        TurnEnding::Failed(ErrorCode::PartialFanOut),
        TurnEnding::Cancelled,
        TurnEnding::CutShort,
        TurnEnding::Idle,
        TurnEnding::Swept,
    ])
}

/// Writes a message and returns the tools that it uses.
fn write(log: &mut LogBuilder, blocks: &[MessageBlock]) -> Vec<(ToolUseId, String, ToolOutcome)> {
    let mut tools = Vec::new();
    log.message();
    for (index, block) in (0u32..).zip(blocks) {
        match block {
            MessageBlock::Text(pieces) => pieces.iter().for_each(|piece| log.text(index, piece)),
            MessageBlock::Thinking(pieces, signed) => {
                for piece in pieces {
                    log.thinking(index, piece, None);
                }
                if *signed {
                    log.thinking(index, "", Some("c2VhbA=="));
                }
            }
            MessageBlock::Tool(name, outcome) => {
                let id = log.tool_start(index, name);
                log.input(index, id, "{}");
                log.tool_end(index, id, json!({}));
                tools.push((id, name.clone(), *outcome));
            }
        }
    }
    tools
}

fn call(log: &mut LogBuilder, blocks: &[MessageBlock]) {
    let call = log.call();
    let tools = write(log, blocks);
    log.complete(call, StopReason::EndTurn);
    for (id, name, outcome) in tools {
        match outcome {
            ToolOutcome::Completed => {
                log.called(id, &name, "{}");
                log.completed(id, &name, "done");
            }
            ToolOutcome::Failed => {
                log.called(id, &name, "{}");
                log.failed(id, &name, ToolErrorClass::Timeout);
            }
            ToolOutcome::Refused => log.refused(id, &name),
        }
    }
}

fn end(log: &mut LogBuilder, ending: TurnEnding) {
    match ending {
        TurnEnding::Done(status) => log.end(status, None),
        TurnEnding::Failed(code) => {
            let error = TurnError {
                code,
                sub_agent_id: Some("offers".into()),
                failed: vec![TurnError::sub_agent("offers")],
                ..TurnError::envelope("offer_feed", Reason::Unauthorized)
            };
            log.end_with(TurnStatus::Failed, Some(error));
        }
        TurnEnding::Cancelled => log.cancel("user_cancel"),
        TurnEnding::CutShort => {
            log.call();
            write(log, &[MessageBlock::Text(vec!["I was".into()])]);
            log.cancel("user_cancel");
        }
        TurnEnding::Idle => log.stop(CancelCode::IdleTimeout, Phase::Idle, "idle_timeout"),
        TurnEnding::Swept => {
            let call = log.call();
            let tools = write(
                log,
                &[MessageBlock::Tool("sleep".into(), ToolOutcome::Completed)],
            );
            log.complete(call, StopReason::ToolUse);
            log.called(tools[0].0, "sleep", "{}");
            let reason = Some("server_restart".into());
            let error = ErrorCode::InternalError.into();
            log.sweep(&CloseCause::Failed { error, reason });
        }
    }
}

prop_compose! {
    fn any_session()(
        turns in prop::collection::vec(
            (
                prop::collection::vec((any_dispatch(), prop::collection::vec(any_block(), 0..4)), 0..3),
                any_ending(),
            ),
            1..3,
        ),
    ) -> Vec<Event> {
        let mut log = LogBuilder::new();
        let mut counter = 0;
        for (calls, ending) in turns {
            log.turn("hi");
            for (agents, blocks) in &calls {
                if !agents.is_empty() {
                    fan_out(&mut log, agents, &mut counter);
                }
                call(&mut log, blocks);
            }
            end(&mut log, ending);
        }
        log.events
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_turns_keep_invariants_and_replay_as_live(events in any_session()) {
        prop_assert_eq!(event_invariants::violations(&events), Vec::<String>::new());
        for turn in turns(&events) {
            for version in WireVersion::ALL {
                let violations = invariants::violations(&turn, &stream(&turn, version), version);
                prop_assert_eq!(violations, Vec::<String>::new());
                resume::replay_is_live("random", &turn, version);
            }
        }
    }

    // S1-003
    #[test]
    fn no_text_breaks_a_block(text in any::<String>(), odd in "[\r\n\u{0}\u{feff}\u{2028}:a ]{0,12}") {
        let text = text + &odd;
        let message_id = MessageId(Ulid(7));
        let bodies = |after_text| [
            Body::TextDelta(TextDelta { message_id, content_block_index: 0, text: text.clone() }),
            Body::ThinkingDelta(ThinkingDelta {
                message_id,
                content_block_index: 0,
                text: text.clone(),
                signature: None,
                after_text,
            }),
            Body::ToolCalled(ToolCalled { upstream_id: None,
                tool_use_id: ToolUseId(Ulid(8)),
                tool_name: text.clone(),
                tool_type: ToolType::Mcp,
                input_summary: text.clone(),
            }),
            Body::StatusEmitted(StatusEmitted { event_id: "busy".into(), message: text.clone(), invocation_id: None }),
            Body::ComponentRendered(ComponentRendered {
                component: json!({ "name": text.clone() }),
                tool_call: RenderingToolCall { upstream_id: None,
                    id: ToolUseId(Ulid(8)),
                    name: "render_card".into(),
                    tool_type: ToolType::Render,
                },
            }),
        ];
        let mut log = LogBuilder::new();
        log.turn("hi");
        let from = log.events.len();
        for body in bodies(false).into_iter().chain(bodies(true)) {
            log.emit(Actor::ORCHESTRATOR, body);
        }
        for event in &log.events[from..] {
            let bytes = stream(std::slice::from_ref(event), WireVersion::V05);
            let read = items(&bytes).expect("one block");
            let frames = frames(&bytes);
            prop_assert_eq!(read.len(), frames.len());
            let Some(frame) = frames.first() else {
                prop_assert!(text.is_empty());
                continue;
            };
            prop_assert_eq!(frames.len(), 1);
            let data = &frame.data;
            let projected = match frame.event.as_str() {
                "status" => &data["data"]["message"],
                "component" => &data["chunk"]["name"],
                "tool_call" => &data["tool_call"]["name"],
                "text" | "reasoning" => &data["chunk"],
                _ => &data["content"],
            };
            prop_assert_eq!(projected.as_str(), Some(text.as_str()));
        }
    }
}
