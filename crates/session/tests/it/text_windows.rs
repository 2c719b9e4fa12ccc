//! The text of a turn through the gate of packs: a deny list, and text that is collected in windows.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::stream::{MessageStart, TextDelta, ThinkingDelta};
use turnwire_event::code::CallPurpose;
use turnwire_event::port::{Emission, MessageEnd, TurnContext};
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, Event, MessageId, Position, Role, StopReason, TokenUsage,
};
use turnwire_pack::{FlagCohort, PackFiles, check};
use turnwire_render::RenderPolicies;
use turnwire_session::LiveSession;

use crate::stage::*;

const GATHER: &str = "ai_assistant_gather_text";

/// Gates of a pack with a denied word; text is collected for principals with the flag.
fn denying(flags: &[&str]) -> GateFactory {
    let files = PackFiles::from_pairs([
        (
            "pack.yaml",
            "name: market\nversion: \"1\"\ndefault_locale: en\n\
             models: {default: \"scripted:market\"}\nfan_out: {cap: 3}\n\
             flags: {ai_assistant_gather_text: false}\nlimits: {status_window_ms: 150}\n",
        ),
        (
            "orchestrator.yaml",
            "id: orchestrator\nversion: \"1\"\nkind: orchestrator\ndescription: Speaks.\n\
             model: default\nprompt_blocks: [persona]\nsub_agents: []\ndeny_words: [secret]\n",
        ),
        (
            "overrides.yaml",
            "ai_assistant_gather_text: {text: {policy: batch}}\n",
        ),
        ("prompts/persona.md", "You help."),
        ("locales/en.yaml", "status.none: \"None\"\n"),
    ]);
    let report = check(&files, &|_| None);
    let pack = report
        .pack
        .unwrap_or_else(|| panic!("{:#?}", report.findings));
    let policies = RenderPolicies::new(Arc::new(pack));
    let cohort = FlagCohort {
        id: "c".into(),
        flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
    };
    Arc::new(move || policies.gate(&cohort, "en", ""))
}

/// A turn that emits text, and the client's view of it.
#[derive(Clone)]
struct Speaker {
    turn: TurnContext,
    live: Arc<LiveSession>,
    message_id: MessageId,
}

impl Speaker {
    fn emit_text(&self, text: &str) {
        let body = Body::TextDelta(TextDelta {
            message_id: self.message_id,
            content_block_index: 0,
            text: text.into(),
        });
        emit(&self.turn, body);
    }

    fn emit_thinking(&self) {
        let body = Body::ThinkingDelta(ThinkingDelta {
            message_id: self.message_id,
            content_block_index: 1,
            text: "hm".into(),
            signature: None,
            after_text: false,
        });
        emit(&self.turn, body);
    }

    /// Advances the paused clock, and lets the timers run.
    async fn wait(&self, ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    /// The text that a client has read so far.
    fn read(&self) -> String {
        let message = self
            .live
            .ring
            .with_state(|transcript, _, _| transcript.message_in_flight(usize::MAX));
        let content = message.map(|message| message.content).unwrap_or_default();
        words(&content)
    }
}

/// Starts a message without text.
fn begin(turn: &TurnContext, call_id: CallId, message_id: MessageId) -> Position {
    let model = "m".to_owned();
    emit(
        turn,
        Body::LlmCallStarted(CallStarted {
            call_id,
            model: model.clone(),
            purpose: CallPurpose::Compose,
            attempt: 1,
            first: false,
        }),
    );
    let start = Body::MessageStart(MessageStart {
        message_id,
        role: Role::Assistant,
        model,
    });
    let emission = Emission::new(Actor::ORCHESTRATOR, start);
    turn.emitter.emit(emission).expect("accepted")
}

fn words(content: &[ContentBlock]) -> String {
    content.iter().filter_map(ContentBlock::as_text).collect()
}

/// Runs a turn with `speech` on a paused clock. Returns its events and its message.
async fn spoken<F>(
    gates: GateFactory,
    speech: impl Fn(Speaker) -> F + Send + Sync + 'static,
) -> Spoken
where
    F: Future<Output = ()> + Send + 'static,
{
    let dir = tempfile::tempdir().expect("a folder");
    let (live, go): (Arc<OnceLock<Arc<LiveSession>>>, _) =
        (Arc::default(), Arc::new(Notify::new()));
    let text: Arc<Mutex<String>> = Arc::default();
    let (shared, speech) = ((live.clone(), go.clone(), text.clone()), Arc::new(speech));
    let act = producer_fn(move |turn| {
        let ((live, go, text), speech) = (shared.clone(), speech.clone());
        async move {
            go.notified().await;
            let (call_id, message_id, _) = ids();
            let live_session = begin(&turn, call_id, message_id);
            let speaker = Speaker {
                turn: turn.clone(),
                live: live.get().expect("a session").clone(),
                message_id,
            };
            // From here on text is released at once.
            turn.emitter.committed(live_session).await.expect("durable");
            tokio::time::pause();
            speech(speaker).await;
            tokio::time::resume();
            let end = MessageEnd {
                provider_state: turnwire_event::ProviderState::default(),
                provider_response_id: None,
                call_id,
                message_id,
                stop_reason: StopReason::EndTurn,
                usage: TokenUsage::default(),
                failure: None,
                tools: Vec::new(),
            };
            *text.lock() = words(&turn.emitter.complete(end).expect("accepted"));
            OK
        }
    });
    let sessions = service_with_gates(dir.path(), gates, act).await;
    let id = new_session(&sessions).await;
    let live_session = sessions
        .live_sessions()
        .open(&owner("local"), id)
        .await
        .expect("a session");
    assert!(live.set(live_session.clone()).is_ok());
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    accepted.expect("accepted");
    go.notify_one();
    let ended = wait_for_end(&sessions, id).await;
    let end = ended.last().map(|event| &event.body);
    let Some(Body::TurnCompleted(end)) = end else {
        panic!("{end:?}")
    };
    assert_eq!(end.status, OK.status, "the speech broke");
    let events = Mutex::new(Vec::new());
    live_session.ring.read(
        0,
        live_session.ring.first(),
        1_000,
        &|entry, _| {
            events
                .lock()
                .push(Event::read(&entry.bytes).expect("an event"));
            0
        },
        &mut |_| {},
    );
    let message = text.lock().clone();
    Spoken {
        events: events.into_inner(),
        message,
    }
}

struct Spoken {
    events: Vec<Event>,
    message: String,
}

#[tokio::test]
async fn denied_word_is_masked_across_a_window_boundary() {
    let spoken = spoken(denying(&[GATHER]), |speaker| async move {
        speaker.emit_text("a sec");
        speaker.wait(200).await;
        assert_eq!(speaker.read(), "a ", "a window has ended");
        speaker.emit_text("ret plan, se");
        speaker.wait(200).await;
        speaker.emit_text("crets are ");
        speaker.wait(10).await;
        speaker.emit_text("words");
    });
    let piece = spoken.await.message;
    assert_eq!(piece, "a ••• plan, secrets are words");
}

#[tokio::test]
async fn window_has_its_full_length_after_a_pause() {
    let spoken = spoken(denying(&[GATHER]), |speaker| async move {
        speaker.wait(1_000).await;
        for (piece, all) in [("one ", "one "), ("two ", "one two ")] {
            let earlier = speaker.read();
            speaker.emit_text(piece);
            speaker.wait(140).await;
            assert_eq!(speaker.read(), earlier, "{piece} is held for 150 ms");
            speaker.wait(20).await;
            assert_eq!(speaker.read(), all);
            speaker.wait(1_000).await;
        }
    });
    spoken.await;
}

#[tokio::test]
async fn thinking_after_held_text_is_marked_after_text() {
    let spoken = spoken(denying(&[]), |speaker| async move {
        speaker.emit_text("sec");
        speaker.emit_thinking();
    });
    let events = spoken.await.events;
    let mut words = false;
    let mut thought = 0;
    for event in &events {
        match &event.body {
            Body::TextDelta(delta) => words |= !delta.text.is_empty(),
            Body::ThinkingDelta(delta) => {
                thought += 1;
                assert_eq!(delta.after_text, words);
            }
            _ => {}
        }
    }
    assert_eq!((words, thought), (true, 1));
}
