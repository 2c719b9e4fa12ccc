//! `cargo bench -p turnwire-bench --bench policy`: what a decision of the interceptor costs beside
//! a bare lookup in a map (S1-058), with the recorder of the server installed.
//!
//! The event goes round: what comes out of the gate goes in again, so that nothing but the gate is
//! measured. First the ratios, each a median of rounds that take turns, then the same in divan's
//! words.

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use divan::Bencher;
use metrics_exporter_prometheus::PrometheusBuilder;
use turnwire_event::body::status::Emitted;
use turnwire_event::body::stream::TextDelta;
use turnwire_event::body::tool::Called;
use turnwire_event::code::ToolType;
use turnwire_event::port::{Emission, Gate};
use turnwire_event::{Actor, Body, EventType, MessageId, RenderPolicy, ToolUseId, Ulid};
use turnwire_pack::{
    Cohort, Definition, Entry, History, Kind, Lifecycle, Limits, Line, Locales, OnCancel, Pack,
    Registry,
};
use turnwire_render::Policies;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Short rounds and many of them, so that the median is one that nobody else on the machine cut into.
const PASSES: u32 = 10_000;
const ROUNDS: usize = 101;
/// What the path of a forwarded event may cost, in bare lookups.
const RATIO_MAX: f64 = 5.0;

fn main() {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::set_global_recorder(recorder).expect("this program installs one recorder");
    ratios();
    divan::main();
}

/// Prints what the gate costs beside a lookup.
fn ratios() {
    let mut bare = Vec::new();
    let mut text = Vec::new();
    let mut tool = Vec::new();
    let mut status = Vec::new();
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
            let mut round = Round::new(emission);
            spent.push(nanos(|| round.pass()));
        }
    }
    let bare = median(bare);
    println!("a bare lookup: {bare:.1} ns");
    for (name, spent, goal) in [
        ("text.delta forwarded", text, Some(RATIO_MAX)),
        ("tool.called forwarded", tool, Some(RATIO_MAX)),
        ("status.emitted transformed", status, None),
    ] {
        let spent = median(spent);
        let goal = goal.map_or(String::new(), |max| format!(" (at most {max} is the goal)"));
        println!("ratio {name}: {spent:.1} ns, {:.2}{goal}", spent / bare);
    }
}

/// Nanoseconds of one pass, over many.
fn nanos(mut pass: impl FnMut()) -> f64 {
    (0..PASSES / 10).for_each(|_| pass());
    let began = Instant::now();
    (0..PASSES).for_each(|_| pass());
    began.elapsed().as_nanos() as f64 / f64::from(PASSES)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[divan::bench(sample_size = 1000)]
fn bare_lookup(bencher: Bencher<'_, '_>) {
    let map = words();
    bencher.bench_local(|| look(&map, black_box("text.delta")));
}

#[divan::bench(sample_size = 1000)]
fn text_delta_forwarded(bencher: Bencher<'_, '_>) {
    let mut round = Round::new(said());
    bencher.bench_local(|| round.pass());
}

#[divan::bench(sample_size = 1000)]
fn tool_called_forwarded(bencher: Bencher<'_, '_>) {
    let mut round = Round::new(called());
    bencher.bench_local(|| round.pass());
}

#[divan::bench(sample_size = 1000)]
fn status_transformed(bencher: Bencher<'_, '_>) {
    let mut round = Round::new(searching());
    bencher.bench_local(|| round.pass());
}

/// A gate and the event that goes round in it.
struct Round {
    gate: Box<dyn Gate>,
    slot: Option<Emission>,
    now: Instant,
}

impl Round {
    fn new(emission: Emission) -> Self {
        let cohort = Cohort {
            id: "bench".into(),
            flags: Vec::new(),
        };
        Self {
            gate: Policies::new(Arc::new(pack())).gate(&cohort, "en"),
            slot: Some(emission),
            now: Instant::now(),
        }
    }

    fn pass(&mut self) {
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

fn words() -> HashMap<&'static str, RenderPolicy> {
    let kinds = EventType::ALL.iter();
    kinds
        .map(|kind| (kind.name(), RenderPolicy::Forward))
        .collect()
}

fn look(map: &HashMap<&'static str, RenderPolicy>, word: &str) -> Option<RenderPolicy> {
    map.get(word).copied()
}

fn said() -> Emission {
    let delta = TextDelta {
        message_id: MessageId(Ulid(1)),
        content_block_index: 0,
        text: "some words".into(),
    };
    Emission::new(Actor::ORCHESTRATOR, Body::TextDelta(delta))
}

fn called() -> Emission {
    let called = Called {
        tool_use_id: ToolUseId(Ulid(1)),
        tool_name: "search_offers".into(),
        tool_type: ToolType::Ccs,
        input_summary: "31 bytes".into(),
    };
    Emission::new(Actor::tool("search_offers"), Body::ToolCalled(called))
}

fn searching() -> Emission {
    let body = Emitted {
        event_id: "searching_offers".into(),
        message: String::new(),
    };
    Emission::new(Actor::subagent("shop"), Body::StatusEmitted(body))
}

/// A pack with one sub-agent and fifty statuses, the most there should be (S1-077).
fn pack() -> Pack {
    let other = (1..50).map(|index| format!("status_{index}"));
    let ids: Vec<String> = other.chain(["searching_offers".to_owned()]).collect();
    let entry = |id: &String| Entry {
        id: id.clone(),
        description: String::new(),
        render_key: format!("status.{id}"),
        policy: RenderPolicy::Transform,
        emitters: vec!["shop".into()],
        lifecycle: Lifecycle::Active,
        note: None,
        fragment: "verticals/shop/status_events.yaml".into(),
    };
    let line = |id: &String| {
        let line = Line {
            message: "Searching for offers...".into(),
            phrase: None,
        };
        (format!("status.{id}"), line)
    };
    let texts = BTreeMap::from([("en".to_owned(), ids.iter().map(line).collect())]);
    Pack {
        name: "bench".into(),
        version: "1".into(),
        default_locale: "en".into(),
        digest: String::new(),
        cap: 3,
        limits: Limits::default(),
        flags: Vec::new(),
        models: BTreeMap::new(),
        orchestrator: agent("orchestrator", Kind::Orchestrator),
        agents: vec![agent("shop", Kind::SubAgent)],
        registry: Registry {
            entries: ids.iter().map(entry).collect(),
            version: "1".into(),
        },
        prompts: BTreeMap::new(),
        services: BTreeMap::new(),
        enrichers: Vec::new(),
        tools: Vec::new(),
        locales: Locales::of("en", texts),
        overrides: Vec::new(),
        scripts: Vec::new(),
    }
}

fn agent(id: &str, kind: Kind) -> Definition {
    Definition {
        id: id.into(),
        version: "1".into(),
        kind,
        vertical: None,
        aliases: Vec::new(),
        description: String::new(),
        model: "scripted:bench".into(),
        prompt_blocks: Vec::new(),
        tools: Vec::new(),
        sub_agents: Vec::new(),
        emits: Vec::new(),
        on_cancel: OnCancel::Discard,
        timeout_ms: 1_000,
        default_status: None,
        history: History {
            max_messages: 1,
            max_tokens: 1,
        },
        deny_words: Vec::new(),
    }
}
