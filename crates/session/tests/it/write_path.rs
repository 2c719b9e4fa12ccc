//! The one write path of a turn: every writer goes through the gate into one order, and no event is
//! lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use turnwire_event::body::tool::{ToolCalled, ToolCompleted};
use turnwire_event::code::ToolType;
use turnwire_event::port::{Emission, EventGate, GateOutput, TurnContext};
use turnwire_event::{Actor, Body, IdGenerator as _, Position, RenderPolicy, ToolUseId};
use turnwire_session::SystemIdGenerator;

use crate::stage::*;

/// A gate that counts all events and suppresses them.
struct Hiding(Arc<AtomicUsize>);

impl EventGate for Hiding {
    fn take(&mut self, emission: Emission, _: Instant, out: GateOutput<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        out(emission, Some(RenderPolicy::Suppress.into()));
    }
    fn due(&self) -> Option<Instant> {
        None
    }
    fn flush(&mut self, _: GateOutput<'_>) {}
}

const WRITERS: usize = 8;
const TOOLS: usize = 25;

type Written = Arc<Mutex<Vec<(Position, ToolUseId)>>>;

/// One of several concurrent writers: emits starts and ends of tools.
async fn write(turn: TurnContext, written: Written) {
    for _ in 0..TOOLS {
        let tool_use_id = ToolUseId(SystemIdGenerator.ulid());
        let (tool_name, tool_type) = ("probe".to_owned(), ToolType::Http);
        let called = Body::ToolCalled(ToolCalled {
            upstream_id: None,
            tool_use_id,
            tool_name: tool_name.clone(),
            tool_type,
            input_summary: String::new(),
        });
        let completed = Body::ToolCompleted(ToolCompleted {
            upstream_id: None,
            tool_use_id,
            tool_name,
            tool_type,
            duration_ms: 1,
            result_summary: String::new(),
            result_sha256: String::new(),
        });
        for body in [called, completed] {
            let emission = Emission::new(Actor::tool("probe"), body);
            let at = turn.emitter.emit(emission).expect("accepted");
            written.lock().push((at, tool_use_id));
            tokio::task::yield_now().await;
        }
    }
}

// S1-042, S1-044, S1-045
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_write_passes_the_gate_into_one_durable_order() {
    let dir = tempfile::tempdir().expect("a folder");
    let passed = Arc::new(AtomicUsize::new(0));
    let written = Written::default();
    let all = written.clone();
    let act = producer_fn(move |turn| {
        let all = all.clone();
        async move {
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| tokio::spawn(write(turn.clone(), all.clone())))
                .collect();
            for writer in writers {
                writer.await.expect("a writer");
            }
            OK
        }
    });
    let count = passed.clone();
    let hiding: GateFactory = Arc::new(move || Box::new(Hiding(count.clone())));
    let sessions = service_with_gates(dir.path(), hiding, act).await;
    let id = new_session(&sessions).await;
    let turn = submit(&sessions, &owner("local"), id, text_request("go")).await;
    turn.expect("accepted");
    let events = wait_for_end(&sessions, id).await;

    let mut written = written.lock().clone();
    written.sort();
    assert_eq!(written.len(), WRITERS * TOOLS * 2);
    let ending = 2; // the trace of the dispatch, and the terminal
    assert_eq!(passed.load(Ordering::SeqCst), written.len() + ending);
    let mut open = HashMap::new();
    let mut logged = Vec::new();
    for event in &events {
        let (id, name, kind) = match &event.body {
            Body::ToolCalled(t) => (t.tool_use_id, &t.tool_name, t.tool_type),
            Body::ToolCompleted(t) => (t.tool_use_id, &t.tool_name, t.tool_type),
            _ => continue,
        };
        logged.push((event.id, id));
        assert_eq!(
            event.render.as_ref().map(|r| r.policy),
            Some(RenderPolicy::Suppress)
        );
        // Suppressed or not: start and end in order, with the same tool.
        match open.remove(&id) {
            None => drop(open.insert(id, (event.body.kind(), name, kind))),
            Some(began) => assert_eq!(
                (began, event.body.kind()),
                (
                    (turnwire_event::EventType::ToolCalled, name, kind),
                    turnwire_event::EventType::ToolCompleted
                )
            ),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(
        logged, written,
        "what was written, where it was told it stands"
    );
}
