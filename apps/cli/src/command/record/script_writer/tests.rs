//! What is written is played by the scripted model as it was said.

use std::sync::Arc;

use futures_util::StreamExt as _;
use proptest::prelude::*;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{
    Epoch, Message, MessageId, MessageStatus, Position, ProviderState, Role, Seq, SessionId, Sub,
    ToolUseId, TurnId, Ulid,
};
use turnwire_model::{
    Delta, ModelError, ModelProvider as _, ModelRequest, ModelScript, ScriptedProvider,
};

use super::*;

const START: Position = Position {
    epoch: Epoch(1),
    seq: Seq(5),
    sub: Sub(0),
};

fn message(content: Vec<ContentBlock>) -> StoredMessage {
    StoredMessage {
        response_id: None,
        message: Message {
            id: MessageId(Ulid(1)),
            session_id: SessionId(Ulid(2)),
            turn_id: TurnId(Ulid(3)),
            role: Role::Assistant,
            status: MessageStatus::Complete,
            content,
            model: Some("m:m".into()),
            omitted_bytes: None,
            stop_reason: Some(StopReason::EndTurn),
            usage: None,
            created_at: Timestamp::from_millis(1_000),
            metadata: turnwire_event::JsonObject::default(),
            provider_state: ProviderState::default(),
        },
        started: START,
        completed: Some((
            Position::persisted(Epoch(1), Seq(9)),
            Timestamp::from_millis(9_000),
        )),
        cuts: Vec::new(),
        inputs: Vec::new(),
    }
}

/// Adds the cuts of pieces that came every 100 ms.
fn cut(stored: &mut StoredMessage, cuts: &[(u32, CutKind, usize)]) {
    let from = (stored.started, stored.message.created_at);
    for (n, (block, kind, end)) in (1..).zip(cuts) {
        let cut = DeltaCut {
            at: Position {
                sub: Sub(n),
                ..START
            },
            time: Timestamp::from_millis(1_000 + 100 * i64::from(n)),
            kind: *kind,
            block: *block,
            end: *end as u32,
        };
        cut.write(from, &mut stored.cuts);
    }
}

fn call_attempt<'s>(
    input: &str,
    input_count: usize,
    message: Option<&'s StoredMessage>,
) -> CallAttempt<'s> {
    CallAttempt {
        agent: "orchestrator".into(),
        call: 1,
        attempt: 1,
        input: input.into(),
        input_count,
        locale: "en".into(),
        started_at: Timestamp::from_millis(900),
        message,
        end: AttemptEnd::Completed(
            StopReason::EndTurn,
            TokenUsage {
                input_tokens: 7,
                ..TokenUsage::default()
            },
        ),
    }
}

fn played(yaml: &str, says: &str, attempt: u32) -> Vec<Result<Delta, ModelError>> {
    let script = ModelScript::parse("script.yaml", yaml).unwrap_or_else(|e| panic!("{e}\n{yaml}"));
    let request = ModelRequest {
        model: "scripted:x".into(),
        agent: "orchestrator".into(),
        call: 1,
        attempt,
        locale: "en-GB".into(),
        system: None,
        messages: vec![Arc::new(turnwire_model::ModelMessage::new(
            Role::User,
            vec![ContentBlock::text(says)],
        ))],
        tools: [].into(),
    };
    let mut stream = ScriptedProvider::new(script).stream(request);
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(async move {
            let mut said = Vec::new();
            while let Some(delta) = stream.next().await {
                said.push(delta);
            }
            said
        })
}

fn words(deltas: &[Result<Delta, ModelError>]) -> Vec<String> {
    let text = deltas.iter().filter_map(|delta| match delta {
        Ok(Delta::Text { text, .. }) => Some(text.clone()),
        Ok(Delta::Thinking {
            text, signature, ..
        }) => Some(format!(
            "<{text}{}>",
            signature.as_deref().unwrap_or_default()
        )),
        Ok(Delta::ToolStart { name, .. }) => Some(format!("[{name}")),
        Ok(Delta::ToolInput { fragment, .. }) => Some(fragment.clone()),
        Ok(Delta::ToolEnd { .. }) => Some("]".into()),
        Ok(Delta::Stop { reason, usage }) => Some(format!("{reason:?} {}", usage.input_tokens)),
        Ok(_) => None,
        Err(error) => Some(format!("{:?} {:?}", error.class, error.retry)),
    });
    text.collect()
}

#[test]
fn script_has_pieces_reasoning_tools_and_usage() {
    let mut stored = message(vec![
        ContentBlock::Thinking {
            text: "Hm.".into(),
            signature: Some("seal".into()),
        },
        ContentBlock::text("Grüß {{user}}"),
        ContentBlock::ToolUse {
            id: ToolUseId(Ulid(4)),
            name: "ask".into(),
            input: json!({"q": "{{locale}}"}),
        },
        ContentBlock::ToolUse {
            id: ToolUseId(Ulid(5)),
            name: "broken".into(),
            input: json!({}),
        },
    ]);
    stored.inputs = vec![(2, r#"{"q":"{{locale}}"}"#.into()), (3, r#"{"cut"#.into())];
    let thinking = CutKind::Thinking {
        after_text: false,
        signed: true,
    };
    cut(
        &mut stored,
        &[
            (0, thinking, 3),
            (1, CutKind::Text, 4),
            (1, CutKind::Text, 7),
            (1, CutKind::Text, 15),
            (2, CutKind::ToolStart, 0),
            (2, CutKind::ToolInput, 18),
            (2, CutKind::ToolEnd, 18),
        ],
    );
    let (yaml, warnings) = write(&[call_attempt("hi: there", 1, Some(&stored))], false);
    assert_eq!(warnings, [""; 0]);
    let said = words(&played(&yaml, "hi: there", 1));
    assert_eq!(
        said,
        [
            "<Hm.seal>",
            "Gr\u{fc}",
            "ß ",
            "{{user}}",
            "[ask",
            r#"{"q":"{{locale}}"}"#,
            "]",
            "[broken",
            r#"{"cut"#,
            "]",
            "EndTurn 7"
        ],
        "{yaml}"
    );
    assert!(!yaml.contains("delay_ms"), "{yaml}");
    let (paced, _) = write(&[call_attempt("hi: there", 1, Some(&stored))], true);
    assert!(paced.contains("pause_ms: 200"), "{paced}");
    assert!(paced.contains("delay_ms: 100"), "{paced}");
}

#[test]
fn script_has_failures_attempts_and_stalls() {
    let failed = |attempt, is_retried| CallAttempt {
        attempt,
        end: AttemptEnd::Failed {
            class: LlmErrorClass::RateLimited,
            is_retried,
        },
        ..call_attempt("a", 1, None)
    };
    let stored = message(vec![ContentBlock::text("third")]);
    let third = CallAttempt {
        attempt: 3,
        ..call_attempt("a", 1, Some(&stored))
    };
    let attempts = [failed(1, true), failed(2, true), third];
    let (yaml, _) = write(&attempts, false);
    assert_eq!(words(&played(&yaml, "a", 1)), ["RateLimited Backoff"]);
    assert_eq!(words(&played(&yaml, "a", 2)), ["RateLimited Backoff"]);
    assert_eq!(words(&played(&yaml, "a", 3)), ["third", "EndTurn 7"]);
    let (yaml, _) = write(&[failed(1, false)], false);
    assert_eq!(words(&played(&yaml, "a", 1)), ["RateLimited Never"]);
    let stalled = CallAttempt {
        end: AttemptEnd::Stalled,
        ..call_attempt("a", 1, None)
    };
    let (yaml, _) = write(&[stalled], false);
    assert!(yaml.contains("stall: true"), "{yaml}");
}

#[test]
fn rules_name_the_turn_only_where_answers_differ() {
    let one = message(vec![ContentBlock::text("one")]);
    let two = message(vec![ContentBlock::text("two")]);
    let rules = |attempts: &[CallAttempt<'_>]| {
        let (yaml, warnings) = write(attempts, false);
        let rules = yaml.lines().filter(|line| line.starts_with("- ")).count();
        (rules, yaml.contains("turn: "), warnings.len())
    };
    let twice = [
        call_attempt("a", 1, Some(&one)),
        call_attempt("a", 3, Some(&one)),
    ];
    assert_eq!(rules(&twice), (1, false, 0));
    let apart = [
        call_attempt("a", 1, Some(&one)),
        call_attempt("a", 3, Some(&two)),
    ];
    assert_eq!(rules(&apart), (2, true, 0));
    let lost = [
        call_attempt("a", 1, Some(&one)),
        call_attempt("a", 1, Some(&two)),
    ];
    assert_eq!(rules(&lost), (1, true, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn script_repeats_any_text_in_any_pieces(
        pieces in proptest::collection::vec("\\PC{1,12}|[\\x00-\\x1f{}:#\"'\u{2028}\u{feff}]{1,4}", 1..20),
        says in "\\PC{0,20}|[ -~\n\t]{0,20}",
    ) {
        let mut stored = message(vec![ContentBlock::text(pieces.concat())]);
        let mut end = 0;
        let ends: Vec<_> = pieces
            .iter()
            .map(|piece| {
                end += piece.len();
                (0, CutKind::Text, end)
            })
            .collect();
        cut(&mut stored, &ends);
        let (yaml, _) = write(&[call_attempt(&says, 1, Some(&stored))], false);
        let mut said = words(&played(&yaml, &says, 1));
        prop_assert_eq!(said.pop(), Some("EndTurn 7".to_owned()));
        prop_assert_eq!(said, pieces);
    }
}
