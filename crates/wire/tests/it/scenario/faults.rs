//! Scenarios of failing sub-agents and data services, and of turns that end while they run.

use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{
    AgentErrorClass, DispatchOutcome, ErrorCode, LlmErrorClass, Reason, SlotStatus, StepStatus,
    ToolErrorClass, ToolType, TurnStatus,
};
use turnwire_event::fold::CloseCause;
use turnwire_event::{Event, StopReason};

use super::LogBuilder;
use super::catalog::say;
use super::dispatch::offers;
use super::subagents::RunningSubagent;

const SEARCH: (&str, ToolType) = ("search_offers", ToolType::Ccs);

/// One sub-agent that fails.
fn single_subagent_fails(class: AgentErrorClass, slot: SlotStatus) -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("oat milk offers");
    let shop = log.ask(&["shop"])[0];
    match class {
        AgentErrorClass::Timeout => log.fail_model_call(shop, LlmErrorClass::Cancelled),
        AgentErrorClass::Cancelled
        | AgentErrorClass::Instantiation
        | AgentErrorClass::Model
        | AgentErrorClass::Tool
        | AgentErrorClass::Internal => log.fail_model_call(shop, LlmErrorClass::Transport),
    }
    log.fails(shop, class);
    log.step_done(StepStatus::Failed, &[(shop, slot)]);
    say(&mut log, &["I could not ", "look that up just now."]);
    log.count_failure(Some("shop"), 1, "ends");
    log.end_with(TurnStatus::Failed, Some(TurnError::sub_agent("shop")));
    log.events
}

pub(super) fn axis_1_alone() -> Vec<Event> {
    single_subagent_fails(AgentErrorClass::Model, SlotStatus::Error)
}

pub(super) fn axis_1_timeout() -> Vec<Event> {
    single_subagent_fails(AgentErrorClass::Timeout, SlotStatus::Timeout)
}

/// A data service fails; its sub-agent says so and answers without the data.
fn without_data(
    log: &mut LogBuilder,
    shop: RunningSubagent,
    class: ToolErrorClass,
    reason: Reason,
) {
    log.calls_model(shop);
    let search = log.searches(shop);
    log.tool_failed(search, SEARCH, class);
    log.report_failure(Some(shop), TurnError::envelope("offer_search", reason));
    log.calls_model(shop);
    log.answers(shop, DispatchOutcome::StatusError);
}

fn axis_2_with(class: ToolErrorClass, reason: Reason) -> Vec<Event> {
    let mut log = LogBuilder::new();
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

/// The same failure for a cohort in which it ends the turn.
pub(super) fn axis_2_terminal() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("oat milk offers");
    let shop = log.ask(&["shop"])[0];
    log.calls_model(shop);
    let search = log.searches(shop);
    log.tool_failed(search, SEARCH, ToolErrorClass::EnvelopeError);
    log.calls_model(shop);
    log.answers(shop, DispatchOutcome::StatusError);
    log.step_done(StepStatus::Success, &[(shop, SlotStatus::Success)]);
    say(&mut log, &["I wasn't able to look that up right now"]);
    log.count_failure(Some("shop"), 2, "ends");
    let error = TurnError::envelope("offer_search", Reason::UpstreamTimeout);
    log.end_with(TurnStatus::Failed, Some(error));
    log.events
}

/// Of three sub-agents, one answers, one fails, and one has a failing data service.
pub(super) fn axis_3_mixed() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("offers, points and help");
    let agents = log.ask(&["shop", "rewards", "support"]);
    let (shop, rewards, support) = (agents[0], agents[1], agents[2]);
    log.fail_model_call(rewards, LlmErrorClass::Transport);
    log.fails(rewards, AgentErrorClass::Model);
    log.report_failure(Some(rewards), TurnError::sub_agent("rewards"));
    without_data(
        &mut log,
        shop,
        ToolErrorClass::EnvelopeError,
        Reason::UpstreamUnavailable,
    );
    log.calls_model(support);
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
    log.report_failure(None, TurnError::fan_out(failed));
    say(&mut log, &["Here is what I have."]);
    log.end(TurnStatus::Degraded, None);
    log.events
}

/// Two of two sub-agents fail; the turn still completes.
pub(super) fn axis_3_no_success() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("offers and points");
    let agents = log.ask(&["shop", "rewards"]);
    for (agent, class) in [
        (agents[1], AgentErrorClass::Internal),
        (agents[0], AgentErrorClass::Timeout),
    ] {
        log.fails(agent, class);
        log.report_failure(Some(agent), TurnError::sub_agent(agent.id));
    }
    let slots = [
        (agents[1], SlotStatus::Error),
        (agents[0], SlotStatus::Timeout),
    ];
    log.step_done(StepStatus::Failed, &slots);
    let failed = ["rewards", "shop"].map(TurnError::sub_agent).to_vec();
    log.report_failure(None, TurnError::fan_out(failed));
    say(&mut log, &["I could not reach either."]);
    log.end(TurnStatus::Degraded, None);
    log.events
}

/// A cancel while one sub-agent waits for data and one for its model, and one has answered.
pub(super) fn cancel_in_fan_out() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("offers, points and help");
    let agents = log.ask(&["shop", "rewards", "support"]);
    log.calls_model(agents[0]);
    log.searches(agents[0]);
    log.start_model_call(agents[1]);
    log.calls_model(agents[2]);
    log.answers(agents[2], DispatchOutcome::Success);
    log.cancel("user_cancel");
    log.events
}

/// A crash while one sub-agent shows offers and another waits for its model.
pub(super) fn sweep_in_fan_out() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("offers and points");
    let agents = log.ask(&["shop", "rewards"]);
    log.start_model_call(agents[1]);
    log.calls_model(agents[0]);
    log.uses("render_offer_list", ToolType::Render);
    log.loading(agents[0], "data_1", &["OFF_1"]);
    log.sweep(&CloseCause::Failed {
        error: ErrorCode::InternalError.into(),
        reason: Some("server_restart".into()),
    });
    log.events
}

/// The orchestrator's model fails after the sub-agent answered: a prepared text, then the end.
pub(super) fn failure_acknowledged() -> Vec<Event> {
    let mut log = LogBuilder::new();
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
