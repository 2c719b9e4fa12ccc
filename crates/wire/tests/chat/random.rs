//! Turns and texts made up: the laws hold of them too, and no text breaks a block.

use proptest::prelude::*;
use serde_json::json;
use turnwire_event::body::stream::{TextDelta, ThinkingDelta};
use turnwire_event::body::tool::Called;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CancelCode, ErrorCode, Phase, ToolErrorClass, ToolType, TurnStatus};
use turnwire_event::fold::End;
use turnwire_event::{Actor, Body, Event, MessageId, StopReason, ToolUseId, Ulid};
use turnwire_wire::pc3::Version;

use super::{frames, items, law, resume, stream, turns};
use crate::scenario::{Log, law as events_law};

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
                enricher_id: Some("offer_feed".into()),
                reason: Some("unauthorized".into()),
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
            (prop::collection::vec(prop::collection::vec(any_block(), 0..4), 0..3), any_ending()),
            1..3,
        ),
    ) -> Vec<Event> {
        let mut log = Log::new();
        for (calls, ending) in turns {
            log.turn("hi");
            calls.iter().for_each(|blocks| call(&mut log, blocks));
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
            let said = data.get("chunk").or(data.get("content")).or_else(|| data["tool_call"].get("name"));
            prop_assert_eq!(said.and_then(|said| said.as_str()), Some(text.as_str()));
        }
    }
}
