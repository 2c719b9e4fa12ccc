//! Scenarios of turns with sub-agents and what these emit: statuses, data, components.

use serde_json::json;
use turnwire_event::body::mcp::{McpCallProgressed, McpServerRef, McpToolsListed};
use turnwire_event::code::{DispatchOutcome, SlotStatus, StepStatus, ToolType, TurnStatus};
use turnwire_event::{Actor, Body, Event, RenderDecision, RenderPolicy};

use super::LogBuilder;
use super::catalog::say;
use super::subagents::RunningSubagent;

/// A sub-agent searches, shows two offers and answers.
pub(super) fn offers(log: &mut LogBuilder, shop: RunningSubagent) {
    log.calls_model(shop);
    let search = log.searches(shop);
    log.loading(shop, "data_1", &[]);
    log.tool_done(search, "search_offers", ToolType::Ccs);
    log.calls_model(shop);
    let render = log.uses("render_offer_list", ToolType::Render);
    log.loaded(
        shop,
        "data_1",
        &[("OFF_1", "Oat milk"), ("OFF_2", "Granola")],
    );
    log.tool_done(render, "render_offer_list", ToolType::Render);
    log.calls_model(shop);
    log.answers(shop, DispatchOutcome::Success);
}

pub(super) fn reference_turn() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("oat milk offers");
    let shop = log.ask(&["shop"])[0];
    offers(&mut log, shop);
    log.step_done(StepStatus::Success, &[(shop, SlotStatus::Success)]);
    say(&mut log, &["Here are ", "some offers"]);
    log.end(TurnStatus::Ok, None);
    log.events
}

/// The rendering mark of a batched status; `last` for the last one of a group.
fn grouped(group: u32, last: Option<(&str, &[&str])>) -> RenderDecision {
    let (message, event_ids) = last.unzip();
    let ids = event_ids.unwrap_or_default().iter();
    RenderDecision {
        policy: RenderPolicy::Batch,
        group: Some(group),
        message: message.map(str::to_owned),
        event_ids: ids.map(|id| (*id).to_owned()).collect(),
    }
}

pub(crate) const BOTH: &str = "Searching for offers and looking up your points balance…";
const OFFERS: (&str, &str) = ("searching_offers", "Searching for offers...");
const POINTS: (&str, &str) = (
    "looking_up_points_balance",
    "Looking up your points balance...",
);

/// Two sub-agents at once: their first statuses are one group, a later status is alone.
pub(super) fn batched_statuses() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("offers and points");
    let agents = log.ask(&["shop", "rewards"]);
    let (shop, rewards) = (agents[0], agents[1]);
    let calls = agents.iter().map(|a| log.start_model_call(*a));
    let calls: Vec<_> = calls.collect();
    log.status(shop, OFFERS, grouped(1, None));
    let both: &[&str] = &[OFFERS.0, POINTS.0];
    log.status(rewards, POINTS, grouped(1, Some((BOTH, both))));
    for (agent, call) in agents.iter().zip(calls) {
        log.complete_model_call(*agent, call);
    }
    log.status(shop, OFFERS, grouped(2, Some((OFFERS.1, &[OFFERS.0]))));
    log.answers(rewards, DispatchOutcome::Success);
    log.answers(shop, DispatchOutcome::Success);
    let slots = [(rewards, SlotStatus::Success), (shop, SlotStatus::Success)];
    log.step_done(StepStatus::Success, &slots);
    say(&mut log, &["You have 120 points."]);
    log.end(TurnStatus::Ok, None);
    log.events
}

/// The same events under different rendering policies.
pub(super) fn rendering_policies() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("ofertas");
    let shop = log.ask(&["shop"])[0];
    log.calls_model(shop);
    let spanish = (OFFERS.0, "Buscando ofertas...");
    log.status(shop, spanish, RenderPolicy::Transform.into());
    log.status(shop, OFFERS, RenderPolicy::Forward.into());
    log.status(shop, OFFERS, RenderPolicy::Suppress.into());
    let hidden = log.uses("search_offers", ToolType::Ccs);
    log.stamp(RenderPolicy::Suppress);
    log.tool_done(hidden, "search_offers", ToolType::Ccs);
    log.stamp(RenderPolicy::Suppress);
    log.answers(shop, DispatchOutcome::Success);
    log.step_done(StepStatus::Success, &[(shop, SlotStatus::Success)]);
    say(&mut log, &["No hay."]);
    log.end(TurnStatus::Ok, None);
    log.events
}

/// A single component, and two collections whose placeholders are open at once.
pub(super) fn component_and_collections() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("show me");
    let shop = log.ask(&["shop"])[0];
    log.calls_model(shop);
    let one = log.uses("render_offer_list", ToolType::Render);
    let two = log.uses("render_offer_list", ToolType::Render);
    log.loading(shop, "data_1", &["OFF_1"]);
    log.loading(shop, "data_2", &["OFF_2", "OFF_3"]);
    log.loaded(shop, "data_2", &[("OFF_2", "Granola"), ("OFF_3", "Müsli")]);
    log.tool_done(two, "render_offer_list", ToolType::Render);
    log.loaded(shop, "data_1", &[("OFF_1", "Oat milk")]);
    log.tool_done(one, "render_offer_list", ToolType::Render);
    let card = log.uses("render_card", ToolType::Render);
    let component = json!({"type": "card", "title": "Oat milk", "price": {"amount": "1.79"}});
    log.component(shop, card, component);
    log.tool_done(card, "render_card", ToolType::Render);
    log.calls_model(shop);
    log.answers(shop, DispatchOutcome::Success);
    log.step_done(StepStatus::Success, &[(shop, SlotStatus::Success)]);
    say(&mut log, &["There you are."]);
    log.end(TurnStatus::Ok, None);
    log.events
}

/// More sub-agents than the cap.
pub(super) fn over_cap() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("offers, points and help");
    let ids = log.ask_for(&["ask_shop", "ask_rewards", "ask_support"]);
    log.step(&["shop", "rewards"], 2, &["support"]);
    let shop = log.begin("shop", ids[0]);
    let rewards = log.begin("rewards", ids[1]);
    log.refused(ids[2], "ask_support");
    for agent in [rewards, shop] {
        log.calls_model(agent);
        log.answers(agent, DispatchOutcome::Success);
    }
    let slots = [(rewards, SlotStatus::Success), (shop, SlotStatus::Success)];
    log.step_done(StepStatus::Success, &slots);
    say(&mut log, &["I asked two of three."]);
    log.end(TurnStatus::Ok, None);
    log.events
}

/// An MCP server connects while a turn runs.
pub(super) fn tool_servers() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("list my files");
    let server = || McpServerRef {
        server: "files".into(),
    };
    let listed = McpToolsListed {
        server: "files".into(),
        tool_count: 3,
    };
    let progress = |progress, total| McpCallProgressed {
        server: "files".into(),
        progress,
        total,
    };
    for body in [
        Body::McpSessionStarted(server()),
        Body::McpListToolsStarted(server()),
        Body::McpSessionProgressed(progress(0.5, None)),
        Body::McpSessionProgressed(progress(2.0, Some(2.0))),
        Body::McpListToolsCompleted(listed),
    ] {
        log.emit(Actor::SYSTEM, body);
    }
    say(&mut log, &["None."]);
    log.end(TurnStatus::Ok, None);
    log.events
}
