//! Turns without tools: every event in full and in order.

use std::sync::Arc;

use turnwire_event::code::TurnStatus;
use turnwire_event::content::{ContentBlock, content_json};
use turnwire_event::port::TurnOutcome;

use super::recording_emitter::RecordingEmitter;
use super::turn_harness::TurnHarness;

const OK: TurnOutcome = TurnOutcome {
    cancelled: None,
    reason: None,
    status: TurnStatus::Ok,
    error: None,
};

// S3-052
#[tokio::test]
async fn plain_turn_emits_events_in_order() {
    let harness = TurnHarness::script("- steps: [{text: 'Hi you', chunk: 3}]");
    let recorder = Arc::clone(&harness.recorder);
    assert_eq!(harness.run().await, OK);
    let hash = content_json(&[ContentBlock::text("Hi you")]).1;
    let usage = r#"{"input_tokens":1,"output_tokens":2,"total_tokens":3,"reasoning_tokens":0,"cached_tokens":0,"cost_usd":0.0}"#;
    assert_eq!(
        recorder.lines(),
        [
            r#"system route.decided {"model":"scripted:default","routing_policy_version":"builtin-1","reason":"only model"}"#.to_owned(),
            r#"orchestrator llm.call_started {"call_id":"call_01","model":"scripted:default","purpose":"orchestrate","attempt":1,"first":false}"#.to_owned(),
            r#"orchestrator message.start {"message_id":"02","role":"assistant","model":"scripted:default"}"#.to_owned(),
            r#"orchestrator text.delta {"message_id":"02","content_block_index":0,"text":"Hi "}"#.to_owned(),
            r#"orchestrator text.delta {"message_id":"02","content_block_index":0,"text":"you"}"#.to_owned(),
            format!(r#"orchestrator message.complete {{"message_id":"02","stop_reason":"end_turn","final_content":[{{"type":"text","text":"Hi you"}}],"usage":{usage}}}"#),
            format!(r#"orchestrator llm.call_completed {{"call_id":"call_01","message_id":"02","content_sha256":"{hash}","stop_reason":"end_turn","usage":{usage}}}"#),
        ]
    );
}

// S3-055
#[tokio::test]
async fn reasoning_keeps_its_signature() {
    let harness = TurnHarness::script("- steps: [{thinking: a b, signature: seal}, {text: c}]");
    let recorder = Arc::clone(&harness.recorder);
    assert_eq!(harness.run().await, OK);
    assert_eq!(
        recorder.lines()[3..6],
        [
            r#"orchestrator thinking.delta {"message_id":"02","content_block_index":0,"text":"a","signature":null,"after_text":false}"#,
            r#"orchestrator thinking.delta {"message_id":"02","content_block_index":0,"text":" b","signature":"seal","after_text":false}"#,
            r#"orchestrator text.delta {"message_id":"02","content_block_index":1,"text":"c"}"#,
        ]
    );
    assert!(
        recorder.lines()[6].contains(
            r#""final_content":[{"type":"thinking","text":"a b","signature":"seal"},{"type":"text","text":"c"}]"#
        ),
        "{}",
        recorder.lines()[6]
    );
}

#[tokio::test]
async fn empty_reply_still_has_a_message() {
    let harness = TurnHarness::script("- steps: [{stop: max_tokens}]");
    let recorder = Arc::clone(&harness.recorder);
    assert_eq!(harness.run().await.status, TurnStatus::Failed);
    assert_eq!(
        recorder.types(),
        [
            "route.decided",
            "llm.call_started",
            "message.start",
            "message.complete",
            "llm.call_completed"
        ]
    );
    assert!(
        recorder.lines()[3].contains(r#""stop_reason":"max_tokens","final_content":[]"#),
        "{}",
        recorder.lines()[3]
    );
}

#[tokio::test]
async fn full_outbox_delays_and_loses_nothing() {
    let steps = "- steps: [{text: 'one two three four'}, {tool: {name: none}}, {text: five}]";
    let calm = TurnHarness::script(steps);
    let pressed = TurnHarness::script(steps).record(RecordingEmitter::full_every(2));
    let recorders = [Arc::clone(&calm.recorder), Arc::clone(&pressed.recorder)];
    assert_eq!((calm.run().await, pressed.run().await), (OK, OK));
    assert_eq!(recorders[1].lines(), recorders[0].lines());
}
