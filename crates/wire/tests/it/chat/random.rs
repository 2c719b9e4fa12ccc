//! Turns and texts made up: the laws hold of them too, and no text breaks a block.

use proptest::prelude::*;
use serde_json::json;
use turnwire_event::body::component::{Rendered, ToolCall};
use turnwire_event::body::status::Emitted;
use turnwire_event::body::stream::{TextDelta, ThinkingDelta};
use turnwire_event::body::tool::Called;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{
    AgentErrorClass, CancelCode, DispatchOutcome, ErrorCode, Phase, Reason, SlotStatus, StepStatus,
    ToolErrorClass, ToolType, TurnStatus,
};
use turnwire_event::fold::End;
use turnwire_event::{
    Actor, Body, Event, MessageId, Render, RenderPolicy, StopReason, ToolUseId, Ulid,
};
use turnwire_wire::pc3::Version;

use super::{frames, items, law, resume, stream, turns};
use crate::scenario::crew::Helper;
use crate::scenario::{Log, law as events_law};

/// What a sub-agent shows while it works.
#[derive(Clone, Debug)]
enum Shown {
    Status(String, RenderPolicy),
    Grouped(Vec<String>),
    Data(u8),
    Card(String),
}

/// What becomes of a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Answers,
    LacksData,
    Fails,
}

/// What a block of a message is.
#[derive(Clone, Debug)]
enum Block {
    Text(Vec<String>),
    Thought(Vec<String>, bool),
    Tool(String, Outcome),
}

#[derive(Clone, Copy, Debug)]
enum Outcome {
    Completed,
    Failed,
    Refused,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Done(TurnStatus),
    Failed(ErrorCode),
    Cancelled,
    CutShort,
    Idle,
    Swept,
}

fn any_block() -> impl Strategy<Value = Block> {
    let pieces = || prop::collection::vec(".{0,6}", 0..4);
    let outcome = prop::sample::select(vec![Outcome::Completed, Outcome::Failed, Outcome::Refused]);
    prop_oneof![
        pieces().prop_map(Block::Text),
        (pieces(), any::<bool>()).prop_map(|(pieces, sealed)| Block::Thought(pieces, sealed)),
        ("[a-z_]{1,8}", outcome).prop_map(|(name, outcome)| Block::Tool(name, outcome)),
    ]
}

fn any_shown() -> impl Strategy<Value = Shown> {
    let policy = prop::sample::select(vec![
        RenderPolicy::Forward,
        RenderPolicy::Transform,
        RenderPolicy::Suppress,
        RenderPolicy::Batch,
    ]);
    prop_oneof![
        (".{1,6}", policy).prop_map(|(words, policy)| Shown::Status(words, policy)),
        prop::collection::vec(".{1,6}", 1..4).prop_map(Shown::Grouped),
        (0..4u8).prop_map(Shown::Data),
        ".{0,6}".prop_map(Shown::Card),
    ]
}

/// The sub-agents of one dispatch, none if there is none.
fn any_fan() -> impl Strategy<Value = Vec<(Fate, Vec<Shown>)>> {
    let fate = prop::sample::select(vec![Fate::Answers, Fate::LacksData, Fate::Fails]);
    let shown = prop::collection::vec(any_shown(), 0..4);
    prop::collection::vec((fate, shown), 0..4)
}

fn show(log: &mut Log, helper: Helper, shown: &Shown, nth: &mut u32) {
    *nth += 1;
    let place = format!("data_{nth}");
    match shown {
        Shown::Status(words, policy) => {
            log.status(helper, ("busy", words), Render::from(*policy));
        }
        Shown::Grouped(all) => {
            for (at, words) in all.iter().enumerate() {
                let last = at + 1 == all.len();
                let render = Render {
                    policy: RenderPolicy::Batch,
                    group: Some(*nth),
                    message: last.then(|| all.join(" and ")),
                    event_ids: vec!["busy".into(); if last { all.len() } else { 0 }],
                };
                log.status(helper, ("busy", words), render);
            }
        }
        Shown::Data(items) => {
            let ids = &["a", "b", "c"][..usize::from(*items).min(3)];
            let items: Vec<_> = ids.iter().map(|id| (*id, "x")).collect();
            log.loading(helper, &place, ids);
            log.loaded(helper, &place, &items);
        }
        Shown::Card(title) => {
            let card = log.uses("render_card", ToolType::Render);
            log.component(helper, card, json!({ "title": title }));
            log.tool_done(card, "render_card", ToolType::Render);
        }
    }
}

/// Sub-agents are asked, work and end.
fn fan_out(log: &mut Log, agents: &[(Fate, Vec<Shown>)], nth: &mut u32) {
    let names = &["shop", "rewards", "support"][..agents.len()];
    let (mut slots, mut failed) = (Vec::new(), Vec::new());
    for (helper, (fate, shown)) in log.ask(names).into_iter().zip(agents) {
        log.thinks(helper);
        shown.iter().for_each(|shown| show(log, helper, shown, nth));
        let error = match fate {
            Fate::Answers => {
                log.answers(helper, DispatchOutcome::Success);
                slots.push((helper, SlotStatus::Success));
                continue;
            }
            Fate::LacksData => {
                log.answers(helper, DispatchOutcome::StatusError);
                TurnError::envelope("offer_feed", Reason::UpstreamPartial)
            }
            Fate::Fails => {
                log.gives_up(helper, AgentErrorClass::Internal);
                TurnError::sub_agent(helper.id)
            }
        };
        slots.push((helper, SlotStatus::Error));
        log.reports(Some(helper), error.clone());
        failed.push(error);
    }
    log.step_done(StepStatus::PartialFailure, &slots);
    if !failed.is_empty() {
        log.reports(None, TurnError::fan_out(failed));
    }
}

fn any_ending() -> impl Strategy<Value = Ending> {
    prop::sample::select(vec![
        Ending::Done(TurnStatus::Ok),
        Ending::Done(TurnStatus::Degraded),
        Ending::Done(TurnStatus::Paused),
        Ending::Failed(ErrorCode::InternalError),
        Ending::Failed(ErrorCode::RateLimitError),
        Ending::Failed(ErrorCode::SubAgentFailed),
        Ending::Failed(ErrorCode::CcsEnvelopeError),
        Ending::Failed(ErrorCode::PartialFanOut),
        Ending::Cancelled,
        Ending::CutShort,
        Ending::Idle,
        Ending::Swept,
    ])
}

/// Writes a message, gives the tools it asks for.
fn write(log: &mut Log, blocks: &[Block]) -> Vec<(ToolUseId, String, Outcome)> {
    let mut tools = Vec::new();
    log.message();
    for (index, block) in (0u32..).zip(blocks) {
        match block {
            Block::Text(pieces) => pieces.iter().for_each(|piece| log.text(index, piece)),
            Block::Thought(pieces, sealed) => {
                for piece in pieces {
                    log.thinking(index, piece, None);
                }
                if *sealed {
                    log.thinking(index, "", Some("c2VhbA=="));
                }
            }
            Block::Tool(name, outcome) => {
                let id = log.tool_start(index, name);
                log.input(index, id, "{}");
                log.tool_end(index, id, json!({}));
                tools.push((id, name.clone(), *outcome));
            }
        }
    }
    tools
}

fn call(log: &mut Log, blocks: &[Block]) {
    let call = log.call();
    let tools = write(log, blocks);
    log.complete(call, StopReason::EndTurn);
    for (id, name, outcome) in tools {
        match outcome {
            Outcome::Completed => {
                log.called(id, &name, "{}");
                log.completed(id, &name, "done");
            }
            Outcome::Failed => {
                log.called(id, &name, "{}");
                log.failed(id, &name, ToolErrorClass::Timeout);
            }
            Outcome::Refused => log.refused(id, &name),
        }
    }
}

fn end(log: &mut Log, ending: Ending) {
    match ending {
        Ending::Done(status) => log.end(status, None),
        Ending::Failed(code) => {
            let error = TurnError {
                code,
                sub_agent_id: Some("offers".into()),
                failed: vec![TurnError::sub_agent("offers")],
                ..TurnError::envelope("offer_feed", Reason::Unauthorized)
            };
            log.end_with(TurnStatus::Failed, Some(error));
        }
        Ending::Cancelled => log.cancel("user_cancel"),
        Ending::CutShort => {
            log.call();
            write(log, &[Block::Text(vec!["I was".into()])]);
            log.cancel("user_cancel");
        }
        Ending::Idle => log.stop(CancelCode::IdleTimeout, Phase::Idle, "idle_timeout"),
        Ending::Swept => {
            let call = log.call();
            let tools = write(log, &[Block::Tool("sleep".into(), Outcome::Completed)]);
            log.complete(call, StopReason::ToolUse);
            log.called(tools[0].0, "sleep", "{}");
            let reason = Some("server_restart".into());
            let error = ErrorCode::InternalError.into();
            log.sweep(&End::Failed { error, reason });
        }
    }
}

prop_compose! {
    fn any_session()(
        turns in prop::collection::vec(
            (
                prop::collection::vec((any_fan(), prop::collection::vec(any_block(), 0..4)), 0..3),
                any_ending(),
            ),
            1..3,
        ),
    ) -> Vec<Event> {
        let mut log = Log::new();
        let mut nth = 0;
        for (calls, ending) in turns {
            log.turn("hi");
            for (agents, blocks) in &calls {
                if !agents.is_empty() {
                    fan_out(&mut log, agents, &mut nth);
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
    fn turns_made_up_keep_the_laws_and_replay_as_they_were_live(events in any_session()) {
        prop_assert_eq!(events_law::broken(&events), Vec::<String>::new());
        for turn in turns(&events) {
            for version in Version::ALL {
                let broken = law::broken(&turn, &stream(&turn, version), version);
                prop_assert_eq!(broken, Vec::<String>::new());
                resume::replay_is_live("made up", &turn, version);
            }
        }
    }

    #[test]
    fn s1_003_no_text_breaks_a_block(text in any::<String>(), odd in "[\r\n\u{0}\u{feff}\u{2028}:a ]{0,12}") {
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
            Body::ToolCalled(Called {
                tool_use_id: ToolUseId(Ulid(8)),
                tool_name: text.clone(),
                tool_type: ToolType::Mcp,
                input_summary: text.clone(),
            }),
            Body::StatusEmitted(Emitted { event_id: "busy".into(), message: text.clone() }),
            Body::ComponentRendered(Rendered {
                component: json!({ "name": text.clone() }),
                tool_call: ToolCall {
                    id: ToolUseId(Ulid(8)),
                    name: "render_card".into(),
                    tool_type: ToolType::Render,
                },
            }),
        ];
        let mut log = Log::new();
        log.turn("hi");
        let from = log.events.len();
        for body in bodies(false).into_iter().chain(bodies(true)) {
            log.emit(Actor::ORCHESTRATOR, body);
        }
        for event in &log.events[from..] {
            let bytes = stream(std::slice::from_ref(event), Version::V05);
            let read = items(&bytes).expect("one block");
            let told = frames(&bytes);
            prop_assert_eq!(read.len(), told.len());
            let Some(frame) = told.first() else {
                prop_assert!(text.is_empty());
                continue;
            };
            prop_assert_eq!(told.len(), 1);
            let data = &frame.data;
            let said = match frame.event.as_str() {
                "status" => &data["data"]["message"],
                "component" => &data["chunk"]["name"],
                "tool_call" => &data["tool_call"]["name"],
                "text" | "reasoning" => &data["chunk"],
                _ => &data["content"],
            };
            prop_assert_eq!(said.as_str(), Some(text.as_str()));
        }
    }
}
