//! What a turn of a pack is bound to before its first model call.

use std::sync::Arc;

use turnwire_event::code::TurnStatus;
use turnwire_event::port::{HistoryBudget, TurnContext};

use super::pack_harness::{PackHarness, pack, pack_with, results};

const HELLO: &str = "- steps: [{text: Hello.}]";

fn tool_names(harness: &PackHarness, agent: &str) -> Vec<String> {
    let tools = &harness.requests_of(agent)[0].tools;
    tools.iter().map(|tool| tool.name.clone()).collect()
}

// S2-003, S2-004, S2-082
#[tokio::test]
async fn sub_agent_is_a_tool_with_its_description() {
    let harness = PackHarness::new(HELLO);
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        tool_names(&harness, "orchestrator"),
        ["llm_feedback", "ask_shop", "ask_rewards", "ask_support"]
    );
    let tools = &harness.requests_of("orchestrator")[0].tools;
    assert_eq!(tools[1].description, "All about shop: ask it,  verbatim.");
    assert_eq!(tools[1].input_schema["required"][0], "query");
}

// S2-002
#[tokio::test]
async fn flag_decides_whether_a_sub_agent_is_bound() {
    let gated = "{id: support, flag: ai_assistant_support}";
    for (flag, there) in [
        ("true", true),
        ("false", false),
        ("{principals: [x]}", false),
    ] {
        let pack = pack(&format!("flags: {{ai_assistant_support: {flag}}}\n"), gated);
        let harness = PackHarness::of(pack, HELLO);
        harness.run().await;
        let names = tool_names(&harness, "orchestrator");
        assert_eq!(names.contains(&"ask_support".to_owned()), there, "{flag}");
    }
}

// S1-059, R-19
#[tokio::test]
async fn flag_decides_which_prompt_blocks_a_turn_has() {
    let mut versions = Vec::new();
    for (flag, expected) in [("false", "You are kind."), ("true", "You are brief.")] {
        let pack = pack_with(
            &format!("flags: {{ai_assistant_brief: {flag}}}\n"),
            "[{id: persona, unless: ai_assistant_brief}, {id: brief, flag: ai_assistant_brief}]",
        );
        let harness = PackHarness::of(pack, HELLO);
        harness.run().await;
        let system = harness.requests_of("orchestrator")[0].system.clone();
        let system = system.unwrap_or_default();
        let block = system.split("\n\n").next().unwrap_or_default();
        assert_eq!(block, expected);
        let cohort = harness.pack.cohort("local");
        versions.push(harness.pack.versions(&cohort).prompt);
    }
    assert_ne!(
        versions[0], versions[1],
        "prompts can be compared by version"
    );
}

// S2-028
#[tokio::test]
async fn prompt_names_the_cap_of_sub_agents() {
    let harness = PackHarness::of(pack("fan_out: {cap: 2}\n", "support"), HELLO);
    harness.run().await;
    let system = harness.requests_of("orchestrator")[0].system.clone();
    assert_eq!(
        system.as_deref(),
        Some(
            "You are kind.\n\nYou can ask at most 2 assistants at once. If more of them fit, \
             choose the 2 that matter most for what the person said."
        )
    );
}

// S2-028
#[tokio::test]
async fn cap_placeholder_is_filled_in() {
    let mut harness = PackHarness::new(HELLO);
    let mut pack = turnwire_pack::Pack::clone(&harness.pack);
    let block = "Ask at most {{cap}}, the most fitting.".to_owned();
    pack.prompts.insert("persona".into(), block);
    harness.pack = Arc::new(pack);
    harness.run().await;
    let system = harness.requests_of("orchestrator")[0].system.clone();
    assert_eq!(system.as_deref(), Some("Ask at most 3, the most fitting."));
}

// S2-019
#[tokio::test]
async fn sub_agent_has_its_own_tools_and_no_sub_agents() {
    let harness = PackHarness::new(
        "- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}\n\
         - {when: {agent: orchestrator}, steps: [{text: Done.}]}\n\
         - {when: {agent: shop}, steps: [{tool: {name: ask_rewards, input: {query: x}}}, {text: Found.}]}\n",
    );
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(tool_names(&harness, "shop"), ["search", "show"]);
    assert!(harness.requests_of("rewards").is_empty(), "one hop only");
    let tool_result = &results(&harness.requests_of("shop")[1])[0];
    assert_eq!(
        (tool_result.0.as_str(), tool_result.1),
        (
            Some("There is no such tool. There are: search, show."),
            true
        )
    );
}

// S2-001
#[tokio::test]
async fn bound_turn_keeps_its_tools_after_a_reload() {
    let script = "- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: llm_feedback}}]}\n\
                  - {when: {agent: orchestrator}, steps: [{text: Done.}]}\n";
    let mut harness = PackHarness::new(script);
    let cohort = harness.pack.cohort("local");
    let bound = harness.factory().bind(&harness.input, &cohort);
    let old = bound.versions.clone();
    // The pack changes between the binding and the end of the turn.
    let mut changed = turnwire_pack::Pack::clone(&harness.pack);
    changed.agents.remove(0);
    harness.pack = Arc::new(changed);
    let next = harness.factory().bind(&harness.input, &cohort);
    let run = |work: turnwire_event::port::TurnWork| {
        work(TurnContext {
            delegate: Arc::new(turnwire_event::port::NoChildTasks),
            child_tasks: Arc::new(turnwire_event::port::NoChildTasks),
            input: harness.input.clone(),
            emitter: Arc::clone(&harness.recorder) as _,
            history: Arc::new(harness.memory.clone()),
        })
    };
    assert_eq!(run(bound.work).await.status, TurnStatus::Ok);
    assert_eq!(run(next.work).await.status, TurnStatus::Ok);
    let has_shop: Vec<bool> = harness
        .requests_of("orchestrator")
        .iter()
        .map(|request| request.tools.iter().any(|tool| tool.name == "ask_shop"))
        .collect();
    assert_eq!(has_shop, [true, true, false, false]);
    assert_ne!(old, next.versions, "and the log says which it was");
}

// S2-005
#[tokio::test]
async fn platform_tool_needs_no_sub_agent() {
    let harness = PackHarness::new(
        "- {when: {call: 1}, steps: [{tool: {name: llm_feedback, input: {}}}]}\n\
         - {steps: [{text: Thanks.}]}\n",
    );
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        harness.story(),
        [
            "orchestrator llm.call_started orchestrate",
            "orchestrator llm.call_completed",
            "tool:llm_feedback tool.called",
            "tool:llm_feedback tool.completed",
            "orchestrator llm.call_started orchestrate",
            "says \"Thanks.\"",
            "orchestrator llm.call_completed",
        ]
    );
}

// S2-009, S2-020
#[tokio::test]
async fn only_the_reply_decides_which_sub_agents_run() {
    for (script, asked) in [
        ("- steps: [{text: 'I know that myself.'}]", None),
        (
            "- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_support, input: {query: offers}}}]}\n\
             - {steps: [{text: ok}]}",
            Some("support"),
        ),
        // Another name of the same sub-agent.
        (
            "- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shopping, input: {query: offers}}}]}\n\
             - {steps: [{text: ok}]}",
            Some("shop"),
        ),
    ] {
        let mut harness = PackHarness::new(script);
        harness.input.content = vec![turnwire_event::ContentBlock::text("offers in the shop")];
        assert_eq!(harness.run().await.status, TurnStatus::Ok);
        for id in ["shop", "rewards", "support"] {
            assert_eq!(
                !harness.requests_of(id).is_empty(),
                asked == Some(id),
                "{script}"
            );
        }
        let steps = harness
            .story()
            .join("\n")
            .matches("plan.step_started")
            .count();
        assert_eq!(steps, usize::from(asked.is_some()));
    }
}

#[test]
fn history_token_counts_four_bytes() {
    let harness = PackHarness::new(HELLO);
    let budget = HistoryBudget {
        messages_max: 60,
        bytes_max: 96_000,
    };
    assert_eq!(harness.factory().history(), budget);
    let cohort = harness.pack.cohort("local");
    let bound = harness.factory().bind(&harness.input, &cohort);
    assert_eq!(bound.history, budget);
    assert_eq!(bound.versions, harness.pack.versions(&cohort));
}
