//! Stories about sub-agents and data services that fail, and about turns cut while they work.

use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{
    AgentErrorClass, DispatchOutcome, ErrorCode, LlmErrorClass, Reason, SlotStatus, StepStatus,
    ToolErrorClass, ToolType, TurnStatus,
};
use turnwire_event::fold::End;
use turnwire_event::{Event, StopReason};

use super::Log;
use super::catalog::say;
use super::crew::Helper;
use super::dispatch::offers;

const SEARCH: (&str, ToolType) = ("search_offers", ToolType::Ccs);

/// One sub-agent was asked and gives no answer.
fn alone(class: AgentErrorClass, slot: SlotStatus) -> Vec<Event> {
    let mut log = Log::new();
    log.turn("oat milk offers");
    let shop = log.ask(&["shop"])[0];
    match class {
        AgentErrorClass::Timeout => log.inner_failed(shop, LlmErrorClass::Cancelled),
        AgentErrorClass::Cancelled
        | AgentErrorClass::Instantiation
        | AgentErrorClass::Model
        | AgentErrorClass::Tool
        | AgentErrorClass::Internal => log.inner_failed(shop, LlmErrorClass::Transport),
    }
    log.gives_up(shop, class);
    log.step_done(StepStatus::Failed, &[(shop, slot)]);
    say(&mut log, &["I could not ", "look that up just now."]);
    log.counted(Some("shop"), 1, "ends");
    log.end_with(TurnStatus::Failed, Some(TurnError::sub_agent("shop")));
    log.events
}

pub(super) fn axis_1_alone() -> Vec<Event> {
    alone(AgentErrorClass::Model, SlotStatus::Error)
}

pub(super) fn axis_1_timeout() -> Vec<Event> {
    alone(AgentErrorClass::Timeout, SlotStatus::Timeout)
}

/// A data service gives a sub-agent nothing; it says so and answers without.
fn without_data(log: &mut Log, shop: Helper, class: ToolErrorClass, reason: Reason) {
    log.thinks(shop);
    let search = log.searches(shop);
    log.tool_failed(search, SEARCH, class);
    log.reports(Some(shop), TurnError::envelope("offer_search", reason));
    log.thinks(shop);
    log.answers(shop, DispatchOutcome::StatusError);
}

fn axis_2_with(class: ToolErrorClass, reason: Reason) -> Vec<Event> {
    let mut log = Log::new();
    log.turn("oat milk offers");
    let shop = log.ask(&["shop"])[0];
    without_data(&mut log, shop, class, reason);
    log.step_done(StepStatus::Success, &[(shop, SlotStatus::Success)]);
    say(&mut log, &["I wasn't able to look that up right now"]);
    log.end(TurnStatus::Degraded, None);
    log.events
}

pub(super) fn axis_2() -> Vec<Event> {
    axis_2_with(ToolErrorClass::EnvelopeError, Reason::UpstreamTimeout)
}

pub(super) fn principal_mismatch() -> Vec<Event> {
    axis_2_with(ToolErrorClass::PrincipalMismatch, Reason::Unauthorized)
}

/// The same failure where a cohort wants it to end the turn.
pub(super) fn axis_2_terminal() -> Vec<Event> {
    let mut log = Log::new();
    log.turn("oat milk offers");
    let shop = log.ask(&["shop"])[0];
    log.thinks(shop);
    let search = log.searches(shop);
    log.tool_failed(search, SEARCH, ToolErrorClass::EnvelopeError);
    log.thinks(shop);
    log.answers(shop, DispatchOutcome::StatusError);
    log.step_done(StepStatus::Success, &[(shop, SlotStatus::Success)]);
    say(&mut log, &["I wasn't able to look that up right now"]);
    log.counted(Some("shop"), 2, "ends");
    let error = TurnError::envelope("offer_search", Reason::UpstreamTimeout);
    log.end_with(TurnStatus::Failed, Some(error));
    log.events
}

/// Of three one answers, one fails, and one is failed by a data service.
pub(super) fn axis_3_mixed() -> Vec<Event> {
    let mut log = Log::new();
    log.turn("offers, points and help");
    let agents = log.ask(&["shop", "rewards", "support"]);
    let (shop, rewards, support) = (agents[0], agents[1], agents[2]);
    log.inner_failed(rewards, LlmErrorClass::Transport);
    log.gives_up(rewards, AgentErrorClass::Model);
    log.reports(Some(rewards), TurnError::sub_agent("rewards"));
    without_data(
        &mut log,
        shop,
        ToolErrorClass::EnvelopeError,
        Reason::UpstreamUnavailable,
    );
    log.thinks(support);
    log.answers(support, DispatchOutcome::Success);
    let slots = [
        (rewards, SlotStatus::Error),
        (shop, SlotStatus::Success),
        (support, SlotStatus::Success),
    ];
    log.step_done(StepStatus::PartialFailure, &slots);
    let failed = vec![
        TurnError::sub_agent("rewards"),
        TurnError::envelope("offer_search", Reason::UpstreamUnavailable),
    ];
    log.reports(None, TurnError::fan_out(failed));
    say(&mut log, &["Here is what I have."]);
    log.end(TurnStatus::Degraded, None);
    log.events
}

/// None of two answers; the turn still ends as it should.
pub(super) fn axis_3_no_success() -> Vec<Event> {
    let mut log = Log::new();
    log.turn("offers and points");
    let agents = log.ask(&["shop", "rewards"]);
    for (agent, class) in [
        (agents[1], AgentErrorClass::Internal),
        (agents[0], AgentErrorClass::Timeout),
    ] {
        log.gives_up(agent, class);
        log.reports(Some(agent), TurnError::sub_agent(agent.id));
    }
    let slots = [
        (agents[1], SlotStatus::Error),
        (agents[0], SlotStatus::Timeout),
    ];
    log.step_done(StepStatus::Failed, &slots);
    let failed = ["rewards", "shop"].map(TurnError::sub_agent).to_vec();
    log.reports(None, TurnError::fan_out(failed));
    say(&mut log, &["I could not reach either."]);
    log.end(TurnStatus::Degraded, None);
    log.events
}

/// A cancel while one sub-agent waits for data, one for its model, and one has answered.
pub(super) fn cancel_in_fan_out() -> Vec<Event> {
    let mut log = Log::new();
    log.turn("offers, points and help");
    let agents = log.ask(&["shop", "rewards", "support"]);
    log.thinks(agents[0]);
    log.searches(agents[0]);
    log.inner_call(agents[1]);
    log.thinks(agents[2]);
    log.answers(agents[2], DispatchOutcome::Success);
    log.cancel("user_cancel");
    log.events
}

/// The server dies while one sub-agent shows offers and another waits for its model.
pub(super) fn sweep_in_fan_out() -> Vec<Event> {
    let mut log = Log::new();
    log.turn("offers and points");
    let agents = log.ask(&["shop", "rewards"]);
    log.inner_call(agents[1]);
    log.thinks(agents[0]);
    log.uses("render_offer_list", ToolType::Render);
    log.loading(agents[0], "data_1", &["OFF_1"]);
    log.sweep(&End::Failed {
        error: ErrorCode::InternalError.into(),
        reason: Some("server_restart".into()),
    });
    log.events
}

/// The orchestrator's own model fails after the sub-agent answered: words of ours, then the end.
pub(super) fn failure_acknowledged() -> Vec<Event> {
    let mut log = Log::new();
    log.turn("oat milk offers");
    let shop = log.ask(&["shop"])[0];
    offers(&mut log, shop);
    log.step_done(StepStatus::Success, &[(shop, SlotStatus::Success)]);
    let call = log.call();
    log.fail(call, LlmErrorClass::RateLimited);
    let call = log.call();
    log.message();
    log.text(0, "I cannot answer right now. Please try again later.");
    log.complete(call, StopReason::EndTurn);
    log.end(TurnStatus::Failed, Some(ErrorCode::RateLimitError));
    log.events
}
