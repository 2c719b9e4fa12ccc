//! What tests of this crate have in common: a small pack, emissions, a gate with a clock, and a
//! recorder that counts.

mod counts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use turnwire_event::body::data::{Key, Loading};
use turnwire_event::body::status::Emitted;
use turnwire_event::body::stream::{MessageStart, TextDelta, ThinkingDelta};
use turnwire_event::body::support::Noted;
use turnwire_event::body::tool::Called;
use turnwire_event::code::ToolType;
use turnwire_event::port::{Emission, Gate};
use turnwire_event::{Actor, Body, MessageId, Render, RenderPolicy, Role, ToolUseId, Ulid};
use turnwire_pack::{
    Cohort, Definition, Entry, History, Kind, Lifecycle, Limits, Line, Locales, OnCancel, Override,
    Pack, Registry, Target,
};

use crate::policies::Policies;

pub(crate) use counts::Counts;

/// The flag that gathers the statuses of shop and rewards.
pub(crate) const BATCH: &str = "ai_assistant_batch_status";

pub(crate) fn pack() -> Pack {
    let vertical = |id: &str| agent(id, Kind::SubAgent);
    Pack {
        name: "market".into(),
        version: "1.0.0".into(),
        default_locale: "en".into(),
        digest: String::new(),
        cap: 3,
        limits: Limits::default(),
        flags: Vec::new(),
        models: BTreeMap::new(),
        orchestrator: agent("orchestrator", Kind::Orchestrator),
        agents: vec![vertical("shop"), vertical("rewards"), vertical("receipts")],
        registry: Registry {
            entries: vec![
                entry("one_moment", "platform", RenderPolicy::Transform),
                entry("searching_offers", "shop", RenderPolicy::Transform),
                entry("looking_up_points", "rewards", RenderPolicy::Transform),
                entry("matching_receipt", "receipts", RenderPolicy::Batch),
                entry("counting_shelves", "shop", RenderPolicy::Suppress),
                entry("comparing_prices", "shop", RenderPolicy::Forward),
                Entry {
                    lifecycle: Lifecycle::Deprecated,
                    note: Some("use searching_offers".into()),
                    ..entry("seeking_offers", "shop", RenderPolicy::Transform)
                },
            ],
            version: "r1".into(),
        },
        prompts: BTreeMap::new(),
        services: BTreeMap::new(),
        enrichers: Vec::new(),
        tools: Vec::new(),
        locales: locales(),
        overrides: vec![
            change(BATCH, "searching_offers", Some(RenderPolicy::Batch), None),
            change(BATCH, "looking_up_points", Some(RenderPolicy::Batch), None),
        ],
        scripts: Vec::new(),
    }
}

pub(crate) fn change(
    flag: &str,
    id: &str,
    policy: Option<RenderPolicy>,
    render_key: Option<&str>,
) -> Override {
    Override {
        flag: flag.into(),
        target: Target::Status(id.into()),
        policy,
        render_key: render_key.map(str::to_owned),
    }
}

fn agent(id: &str, kind: Kind) -> Definition {
    Definition {
        id: id.into(),
        version: "1".into(),
        kind,
        vertical: (kind == Kind::SubAgent).then(|| id.to_owned()),
        aliases: Vec::new(),
        description: String::new(),
        model: "scripted:market".into(),
        prompt_blocks: Vec::new(),
        tools: Vec::new(),
        sub_agents: Vec::new(),
        emits: Vec::new(),
        on_cancel: OnCancel::Discard,
        timeout_ms: 20_000,
        default_status: None,
        history: History {
            max_messages: 20,
            max_tokens: 8_000,
        },
        deny_words: Vec::new(),
    }
}

fn entry(id: &str, owner: &str, policy: RenderPolicy) -> Entry {
    let (fragment, emitters) = match owner {
        "platform" => (
            "platform/status_events.yaml".to_owned(),
            vec!["shop".into()],
        ),
        _ => (
            format!("verticals/{owner}/status_events.yaml"),
            vec![owner.to_owned()],
        ),
    };
    Entry {
        id: id.into(),
        description: format!("when {id}"),
        render_key: format!("status.{id}"),
        policy,
        emitters,
        lifecycle: Lifecycle::Active,
        note: None,
        fragment,
    }
}

fn locales() -> Locales {
    let en = [
        ("combined", "{phrases}…", None),
        ("status.one_moment", "One moment...", Some("thinking")),
        (
            "status.searching_offers",
            "Searching for offers...",
            Some("searching for offers"),
        ),
        (
            "status.looking_up_points",
            "Looking up your points...",
            Some("looking up your points"),
        ),
        (
            "status.matching_receipt",
            "Matching your receipt…",
            Some("matching your receipt"),
        ),
        ("status.counting_shelves", "Counting shelves...", None),
        ("status.comparing_prices", "Comparing prices...", None),
        ("status.seeking_offers", "Seeking offers...", None),
        (
            "status.hunting",
            "Hunting for bargains...",
            Some("hunting for bargains"),
        ),
    ];
    let de = [
        ("combined", "{phrases}…", None),
        (
            "status.searching_offers",
            "Angebote werden gesucht …",
            Some("Angebote werden gesucht"),
        ),
        (
            "status.looking_up_points",
            "Dein Punktestand wird abgefragt …",
            Some("dein Punktestand wird abgefragt"),
        ),
        (
            "status.matching_receipt",
            "Dein Beleg wird zugeordnet …",
            Some("dein Beleg wird zugeordnet"),
        ),
        (
            "status.comparing_prices",
            "Preise werden verglichen …",
            None,
        ),
    ];
    let es = [
        ("combined", "{phrases}…", None),
        (
            "status.searching_offers",
            "Buscando ofertas…",
            Some("buscando ofertas"),
        ),
        (
            "status.looking_up_points",
            "Consultando tus puntos…",
            Some("consultando tus puntos"),
        ),
        (
            "status.matching_receipt",
            "Identificando tu recibo…",
            Some("identificando tu recibo"),
        ),
    ];
    let tongue = |texts: &[(&str, &str, Option<&str>)]| {
        let line = |&(key, message, phrase): &(&str, &str, Option<&str>)| {
            let phrase = phrase.map(str::to_owned);
            (
                key.to_owned(),
                Line {
                    message: message.into(),
                    phrase,
                },
            )
        };
        texts.iter().map(line).collect()
    };
    let texts = [
        ("en", tongue(&en)),
        ("de", tongue(&de)),
        ("es", tongue(&es)),
    ];
    Locales::of(
        "en",
        texts.map(|(tag, lines)| (tag.to_owned(), lines)).into(),
    )
}

pub(crate) fn cohort(flags: &[&str]) -> Cohort {
    Cohort {
        id: "c".into(),
        flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
    }
}

/// Everything that came out of a gate, and the clock it goes by.
pub(crate) struct Stage {
    pub gate: Box<dyn Gate>,
    pub out: Vec<(Emission, Option<Render>)>,
    pub now: Instant,
}

impl Stage {
    pub(crate) fn new(pack: Pack, flags: &[&str], locale: &str) -> Self {
        Self::of(Policies::new(Arc::new(pack)).gate(&cohort(flags), locale))
    }

    pub(crate) fn of(gate: Box<dyn Gate>) -> Self {
        Self {
            gate,
            out: Vec::new(),
            now: Instant::now(),
        }
    }

    pub(crate) fn take(&mut self, emission: Emission) {
        let out = &mut self.out;
        self.gate.take(emission, self.now, &mut |event, render| {
            out.push((event, render))
        });
    }

    /// Time passes, and the timer fires where it is due.
    pub(crate) fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        if self.gate.due().is_some_and(|due| due <= self.now) {
            let out = &mut self.out;
            self.gate
                .lapse(self.now, &mut |event, render| out.push((event, render)));
        }
    }

    pub(crate) fn flush(&mut self) {
        let out = &mut self.out;
        self.gate
            .flush(&mut |event, render| out.push((event, render)));
    }

    /// What came out, in short.
    pub(crate) fn told(&self) -> Vec<String> {
        self.out
            .iter()
            .map(|(event, render)| tell(event, render.as_ref()))
            .collect()
    }
}

/// An event in a few words: a status by its id and message, text in quotes, others by type.
fn tell(event: &Emission, render: Option<&Render>) -> String {
    let mut told = match &event.body {
        Body::StatusEmitted(status) => format!("{} {:?}", status.event_id, status.message),
        Body::TextDelta(delta) => format!("{:?}", delta.text),
        other => other.kind().name().to_owned(),
    };
    if let Some(render) = render {
        told += &format!(" {}", crate::meter::word(render.policy));
        if let Some(group) = render.group {
            told += &format!(" {group}");
        }
        if let Some(message) = &render.message {
            told += &format!(" {message:?} {}", render.event_ids.join("+"));
        }
    }
    told
}

/// A status of a sub-agent, with words that must never be seen.
pub(crate) fn status(agent: &str, id: &str) -> Emission {
    status_by(Actor::subagent(agent), id)
}

pub(crate) fn status_by(actor: Actor, id: &str) -> Emission {
    let body = Emitted {
        event_id: id.into(),
        message: "an agent's own words".into(),
    };
    Emission::new(actor, Body::StatusEmitted(body))
}

pub(crate) fn text(words: &str) -> Emission {
    text_in(0, words)
}

pub(crate) fn text_in(block: u32, words: &str) -> Emission {
    let delta = TextDelta {
        message_id: MessageId(Ulid(7)),
        content_block_index: block,
        text: words.into(),
    };
    Emission::new(Actor::ORCHESTRATOR, Body::TextDelta(delta))
}

pub(crate) fn thinking() -> Emission {
    let delta = ThinkingDelta {
        message_id: MessageId(Ulid(7)),
        content_block_index: 9,
        text: "hm".into(),
        signature: None,
        after_text: false,
    };
    Emission::new(Actor::ORCHESTRATOR, Body::ThinkingDelta(delta))
}

pub(crate) fn message_start() -> Emission {
    let start = MessageStart {
        message_id: MessageId(Ulid(7)),
        role: Role::Assistant,
        model: "m".into(),
    };
    Emission::new(Actor::ORCHESTRATOR, Body::MessageStart(start))
}

pub(crate) fn called(name: &str) -> Emission {
    let called = Called {
        tool_use_id: ToolUseId(Ulid(1)),
        tool_name: name.into(),
        tool_type: ToolType::Ccs,
        input_summary: "31 bytes".into(),
    };
    Emission::new(Actor::tool(name), Body::ToolCalled(called))
}

pub(crate) fn loading() -> Emission {
    let loading = Loading {
        id: "data_1".into(),
        data_type: "offer_list".into(),
        key: Key { ids: Vec::new() },
    };
    Emission::new(Actor::tool("render_offer_list"), Body::DataLoading(loading))
}

pub(crate) fn noted() -> Emission {
    let noted = Noted {
        sub_agent_id: "shop".into(),
        text: "likes oats".into(),
    };
    Emission::new(Actor::subagent("shop"), Body::SupportNoted(noted))
}
