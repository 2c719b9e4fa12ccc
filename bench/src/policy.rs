//! What a decision of the interceptor costs beside a bare lookup in a map (S1-058), with a recorder
//! of the server's kind installed.
//!
//! The event goes round: what comes out of the gate goes in again, so that nothing but the gate is
//! measured. Each figure is a median of rounds that take turns.

use std::collections::HashMap;
use std::hint::black_box;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use metrics_exporter_prometheus::PrometheusBuilder;
use serde::{Deserialize, Serialize};
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::body::stream::TextDelta;
use turnwire_event::body::tool::ToolCalled;
use turnwire_event::code::ToolType;
use turnwire_event::port::{Emission, EventGate};
use turnwire_event::{Actor, Body, EventType, MessageId, RenderPolicy, ToolUseId, Ulid};
use turnwire_pack::{FlagCohort, Pack, PackFiles, check};
use turnwire_render::RenderPolicies;

use crate::stat::median;

static PACK: LazyLock<Arc<Pack>> = LazyLock::new(|| Arc::new(pack()));

/// Many short rounds, so that the median is a round that no other process interrupted.
const PASSES: u32 = 10_000;
const ROUNDS: usize = 101;

/// What the path of a forwarded event may cost, in bare lookups.
pub const RATIO_MAX: f64 = 5.0;

/// Nanoseconds of one pass.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub bare: f64,
    /// A `text.delta` that is forwarded.
    pub text: f64,
    /// A `tool.called` that is forwarded.
    pub tool: f64,
    /// A `status.emitted` that is transformed.
    pub status: f64,
}

/// Installs the recorder, once a process, and measures.
pub fn run() -> io::Result<Outcome> {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::set_global_recorder(recorder).map_err(|_| io::Error::other("a recorder is there"))?;
    Ok(measure())
}

fn measure() -> Outcome {
    let [mut bare, mut text, mut tool, mut status] = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        let map = words();
        bare.push(nanos(|| {
            black_box(look(&map, black_box("text.delta")));
        }));
        for (spent, emission) in [
            (&mut text, said()),
            (&mut tool, called()),
            (&mut status, searching()),
        ] {
            let mut round = PolicyRound::new(emission);
            spent.push(nanos(|| round.pass()));
        }
    }
    let [bare, text, tool, status] = [bare, text, tool, status].map(|spent| median(&spent));
    Outcome {
        bare,
        text,
        tool,
        status,
    }
}

/// Nanoseconds of one pass, over many.
fn nanos(mut pass: impl FnMut()) -> f64 {
    (0..PASSES / 10).for_each(|_| pass());
    let began = Instant::now();
    (0..PASSES).for_each(|_| pass());
    began.elapsed().as_nanos() as f64 / f64::from(PASSES)
}

/// A gate and the event that goes round in it.
pub struct PolicyRound {
    gate: Box<dyn EventGate>,
    slot: Option<Emission>,
    now: Instant,
}

impl PolicyRound {
    /// A gate of a cohort of its own, and what goes round.
    pub fn new(emission: Emission) -> Self {
        let cohort = FlagCohort {
            id: "bench".into(),
            flags: Vec::new(),
        };
        Self {
            gate: RenderPolicies::new(PACK.clone()).gate(&cohort, "en", ""),
            slot: Some(emission),
            now: Instant::now(),
        }
    }

    /// Sends every event of the round once.
    #[inline]
    pub fn pass(&mut self) {
        let Some(emission) = self.slot.take() else {
            return;
        };
        let slot = &mut self.slot;
        self.gate.take(emission, self.now, &mut |event, render| {
            black_box(render);
            *slot = Some(event);
        });
    }
}

/// A map like the one a policy could be looked up in.
pub fn words() -> HashMap<&'static str, RenderPolicy> {
    let kinds = EventType::ALL.iter();
    kinds
        .map(|kind| (kind.name(), RenderPolicy::Forward))
        .collect()
}

/// The reference: a bare lookup in a map.
#[inline]
pub fn look(map: &HashMap<&'static str, RenderPolicy>, word: &str) -> Option<RenderPolicy> {
    map.get(word).copied()
}

/// Words of the orchestrator, which are forwarded.
pub fn said() -> Emission {
    let delta = TextDelta {
        message_id: MessageId(Ulid(1)),
        content_block_index: 0,
        text: "some words".into(),
    };
    Emission::new(Actor::ORCHESTRATOR, Body::TextDelta(delta))
}

/// A call of a tool, which is forwarded.
pub fn called() -> Emission {
    let called = ToolCalled {
        upstream_id: None,
        tool_use_id: ToolUseId(Ulid(1)),
        tool_name: "search_offers".into(),
        tool_type: ToolType::Ccs,
        input_summary: "31 bytes".into(),
    };
    Emission::new(Actor::tool("search_offers"), Body::ToolCalled(called))
}

/// A status, which is transformed.
pub fn searching() -> Emission {
    let body = StatusEmitted {
        event_id: "searching_offers".into(),
        message: String::new(),
        invocation_id: None,
    };
    Emission::new(Actor::subagent("shop"), Body::StatusEmitted(body))
}

/// A pack with one sub-agent and fifty statuses, the most there should be (S1-077).
fn pack() -> Pack {
    let other = (1..50).map(|index| format!("status_{index}"));
    let ids: Vec<String> = other.chain(["searching_offers".to_owned()]).collect();
    let entry = |id: &String| {
        format!(
            "- {{id: {id}, description: d, default_render_key: status.{id}, \
             default_policy: transform, emitter_subagents: [shop], lifecycle: active}}\n"
        )
    };
    let line = |id: &String| format!("status.{id}: \"Searching for offers...\"\n");
    let agent = |id: &str, kind: &str, rest: &str| {
        format!(
            "id: {id}\nversion: \"1\"\nkind: {kind}\ndescription: d\nmodel: default\n\
             prompt_blocks: [persona]\n{rest}\n"
        )
    };
    let manifest = "name: bench\nversion: \"1.0.0\"\ndefault_locale: en\n\
                    models: {default: \"scripted:bench\"}\nfan_out: {cap: 3}\n";
    let files = PackFiles::from_pairs([
        ("pack.yaml", manifest.to_owned()),
        (
            "orchestrator.yaml",
            agent("orchestrator", "orchestrator", "sub_agents: [shop]"),
        ),
        (
            "verticals/shop/agent.yaml",
            agent("shop", "sub_agent", "on_cancel: discard"),
        ),
        (
            "verticals/shop/status_events.yaml",
            ids.iter().map(entry).collect(),
        ),
        ("locales/en.yaml", ids.iter().map(line).collect()),
        ("prompts/persona.md", "You help.".to_owned()),
    ]);
    let report = check(&files, &|_| None);
    report.pack.expect("the pack that is written here is sound")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gate_passes_events_through() {
        for emission in [said(), called(), searching()] {
            let mut round = PolicyRound::new(emission);
            round.pass();
            round.pass();
            assert!(round.slot.is_some());
        }
    }
}
