//! Test support for this crate: a small pack, emissions, a gate with a manual clock, and a metrics
//! recorder.

mod recorder;

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use turnwire_event::body::component::{ComponentRendered, RenderingToolCall};
use turnwire_event::body::data::{CollectionKey, DataLoading};
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::body::stream::{MessageStart, TextDelta, ThinkingDelta};
use turnwire_event::body::support::SupportNoted;
use turnwire_event::body::tool::ToolCalled;
use turnwire_event::code::ToolType;
use turnwire_event::port::{Emission, EventGate};
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{Actor, Body, MessageId, RenderDecision, RenderPolicy, Role, ToolUseId, Ulid};
use turnwire_pack::{FlagCohort, OverrideTarget, Pack, PackFiles, RenderOverride, check};

use crate::policies::RenderPolicies;

pub(crate) use recorder::CountingRecorder;

/// The flag that batches the statuses of shop and rewards.
pub(crate) const BATCH: &str = "ai_assistant_batch_status";

/// A pack with three sub-agents. German and Spanish have texts for some of the statuses only.
pub(crate) fn pack() -> Pack {
    static PACK: LazyLock<Pack> = LazyLock::new(checked);
    PACK.clone()
}

fn checked() -> Pack {
    let mut files = vec![
        ("pack.yaml".to_owned(), MANIFEST.to_owned()),
        ("orchestrator.yaml".to_owned(), ORCHESTRATOR.to_owned()),
        ("overrides.yaml".to_owned(), OVERRIDES.to_owned()),
        ("prompts/persona.md".to_owned(), "You help.".to_owned()),
        ("locales/en.yaml".to_owned(), ENGLISH.to_owned()),
        ("locales/de.yaml".to_owned(), GERMAN.to_owned()),
        ("locales/es.yaml".to_owned(), SPANISH.to_owned()),
        (
            "platform/status_events.yaml".to_owned(),
            entry("one_moment", "shop", "transform"),
        ),
    ];
    let emitted: [(&str, &[(&str, &str)]); 3] = [
        (
            "shop",
            &[
                ("searching_offers", "transform"),
                ("counting_shelves", "suppress"),
                ("comparing_prices", "forward"),
            ],
        ),
        ("rewards", &[("looking_up_points", "transform")]),
        ("receipts", &[("matching_receipt", "batch")]),
    ];
    for (agent, statuses) in emitted {
        let entries = statuses.iter().map(|(id, policy)| entry(id, agent, policy));
        let definition = AGENT.replace("AGENT", agent);
        files.extend([
            (format!("verticals/{agent}/agent.yaml"), definition),
            (
                format!("verticals/{agent}/status_events.yaml"),
                entries.collect(),
            ),
        ]);
    }
    let report = check(&PackFiles::from_pairs(files), &|_| None);
    report
        .pack
        .unwrap_or_else(|| panic!("{:#?}", report.findings))
}

fn entry(id: &str, agent: &str, policy: &str) -> String {
    format!(
        "- {{id: {id}, description: when {id}, default_render_key: status.{id}, \
         default_policy: {policy}, emitter_subagents: [{agent}], lifecycle: active}}\n"
    )
}

const MANIFEST: &str = r#"
name: market
version: "1.0.0"
default_locale: en
models: {default: "scripted:market"}
fan_out: {cap: 3}
flags: {ai_assistant_batch_status: true}
"#;

const ORCHESTRATOR: &str = r#"
id: orchestrator
version: "1"
kind: orchestrator
description: Speaks.
model: default
prompt_blocks: [persona]
sub_agents: [shop, rewards, receipts]
"#;

const AGENT: &str = r#"
id: AGENT
version: "1"
kind: sub_agent
vertical: AGENT
description: Knows AGENT.
model: default
prompt_blocks: [persona]
on_cancel: discard
"#;

const OVERRIDES: &str = "
ai_assistant_batch_status:
  searching_offers: {policy: batch}
  looking_up_points: {policy: batch}
";

const ENGLISH: &str = r#"
status.one_moment: {message: "One moment...", phrase: "thinking"}
status.searching_offers: {message: "Searching for offers...", phrase: "searching for offers"}
status.looking_up_points: {message: "Looking up your points...", phrase: "looking up your points"}
status.matching_receipt: {message: "Matching your receipt…", phrase: "matching your receipt"}
status.counting_shelves: "Counting shelves..."
status.comparing_prices: "Comparing prices..."
status.hunting: "Hunting for bargains..."
"#;

const GERMAN: &str = r#"
status.searching_offers: {message: "Angebote werden gesucht …", phrase: "Angebote werden gesucht"}
status.looking_up_points:
  {message: "Dein Punktestand wird abgefragt …", phrase: "dein Punktestand wird abgefragt"}
status.matching_receipt:
  {message: "Dein Beleg wird zugeordnet …", phrase: "dein Beleg wird zugeordnet"}
status.comparing_prices: "Preise werden verglichen …"
"#;

const SPANISH: &str = r#"
status.searching_offers: {message: "Buscando ofertas…", phrase: "buscando ofertas"}
status.looking_up_points: {message: "Consultando tus puntos…", phrase: "consultando tus puntos"}
status.matching_receipt: {message: "Identificando tu recibo…", phrase: "identificando tu recibo"}
"#;

pub(crate) fn status_override(
    flag: &str,
    id: &str,
    policy: Option<RenderPolicy>,
    render_key: Option<&str>,
) -> RenderOverride {
    RenderOverride {
        flag: flag.into(),
        target: OverrideTarget::Status(id.into()),
        policy,
        render_key: render_key.map(str::to_owned),
    }
}

pub(crate) fn cohort(flags: &[&str]) -> FlagCohort {
    FlagCohort {
        id: "c".into(),
        flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
    }
}

/// A gate with a manual clock and everything that the gate has emitted.
pub(crate) struct GateHarness {
    pub gate: Box<dyn EventGate>,
    pub out: Vec<(Emission, Option<RenderDecision>)>,
    pub now: Instant,
}

impl GateHarness {
    pub(crate) fn new(pack: Pack, flags: &[&str], locale: &str) -> Self {
        Self::of(RenderPolicies::new(Arc::new(pack)).gate(&cohort(flags), locale, ""))
    }

    pub(crate) fn of(gate: Box<dyn EventGate>) -> Self {
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

    /// Advances the clock and fires the gate's timer if it is due.
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

    /// A short description of each emitted event.
    pub(crate) fn output(&self) -> Vec<String> {
        self.out
            .iter()
            .map(|(event, render)| describe(event, render.as_ref()))
            .collect()
    }
}

/// Describes a status by its id and message, text in quotes, and other events by type.
fn describe(event: &Emission, render: Option<&RenderDecision>) -> String {
    let mut description = match &event.body {
        Body::StatusEmitted(status) => format!("{} {:?}", status.event_id, status.message),
        Body::TextDelta(delta) => format!("{:?}", delta.text),
        other => other.kind().name().to_owned(),
    };
    if let Some(render) = render {
        description += &format!(" {}", crate::policy_metrics::policy_name(render.policy));
        if let Some(group) = render.group {
            description += &format!(" {group}");
        }
        if let Some(message) = &render.message {
            description += &format!(" {message:?} {}", render.event_ids.join("+"));
        }
    }
    description
}

/// A status of a sub-agent, with a message that must never reach a client.
pub(crate) fn status(agent: &str, id: &str) -> Emission {
    status_by(Actor::subagent(agent), id)
}

pub(crate) fn status_by(actor: Actor, id: &str) -> Emission {
    let body = StatusEmitted {
        event_id: id.into(),
        message: "an agent's own words".into(),
        invocation_id: None,
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
    let called = ToolCalled {
        upstream_id: None,
        tool_use_id: ToolUseId(Ulid(1)),
        tool_name: name.into(),
        tool_type: ToolType::Ccs,
        input_summary: "31 bytes".into(),
    };
    Emission::new(Actor::tool(name), Body::ToolCalled(called))
}

pub(crate) fn loading() -> Emission {
    let loading = DataLoading {
        id: "data_1".into(),
        data_type: "offer_list".into(),
        key: CollectionKey { ids: Vec::new() },
    };
    Emission::new(Actor::tool("render_offer_list"), Body::DataLoading(loading))
}

/// A component with a message that is shown to clients.
pub(crate) fn rendered() -> Emission {
    let tool_call = RenderingToolCall {
        upstream_id: None,
        id: ToolUseId(Ulid(7)),
        name: "render_card".into(),
        tool_type: ToolType::Render,
    };
    let body = Body::ComponentRendered(ComponentRendered {
        component: serde_json::json!({"title": "Oat milk"}),
        tool_call,
    });
    Emission {
        message: Some(NewMessage {
            provider_state: turnwire_event::ProviderState::default(),
            id: MessageId(Ulid(8)),
            role: Role::Tool,
            content: Vec::new(),
            metadata: turnwire_event::JsonObject::default(),
            scope: MessageScope::Shared,
        }),
        ..Emission::new(Actor::tool("render_card"), body)
    }
}

pub(crate) fn noted() -> Emission {
    let noted = SupportNoted {
        sub_agent_id: "shop".into(),
        text: "likes oats".into(),
    };
    Emission::new(Actor::subagent("shop"), Body::SupportNoted(noted))
}
