//! The context that a sub-agent inherits and the messages it remembers: references and short values,
//! never the whole session.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use turnwire_event::body::subagent::SubagentContext;
use turnwire_event::code::{ToolType, TurnStatus};
use turnwire_event::port::{BoxFuture, HistoryBudget};
use turnwire_event::row::MessageScope;
use turnwire_event::{Body, ContentBlock, Message, Role, ToolUseId, Ulid};
use turnwire_model::ModelMessage;
use turnwire_tool::{ToolContext, ToolInvocation};

use super::pack_harness::{PackHarness, TestTool, words};
use super::turn_harness::message;
use crate::resources::message_metadata::mark_not_executed;

/// A script that calls the sub-agent rewards.
const REWARDS: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_rewards, input: {query: my points}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: rewards}, steps: [{text: Forty.}]}
";

fn context(harness: &PackHarness) -> SubagentContext {
    let bodies = harness.recorder.bodies().into_iter();
    let mut started = bodies.filter_map(|(_, body)| match body {
        Body::SubagentStarted(started) => Some(started.context),
        _ => None,
    });
    started.next().expect("one was asked")
}

fn asks(turn: u128, id: u128, name: &str) -> Vec<Message> {
    let tool_use = ContentBlock::ToolUse {
        id: ToolUseId(Ulid(id)),
        name: name.into(),
        input: json!({"query": "x"}),
    };
    let result = ContentBlock::ToolResult {
        tool_use_id: ToolUseId(Ulid(id)),
        content: json!({"text": "SUBRAW"}),
        is_error: false,
    };
    vec![
        message(turn, Role::Assistant, vec![tool_use]),
        message(turn, Role::Tool, vec![result]),
    ]
}

/// The messages of a turn that called `tool`.
fn turn(turn: u128, asked: &str, tool: &str, answer: &str) -> Vec<Message> {
    let mut messages = vec![message(turn, Role::User, vec![ContentBlock::text(asked)])];
    messages.extend(asks(turn, 1000 + turn, tool));
    messages.push(message(
        turn,
        Role::Assistant,
        vec![ContentBlock::text(answer)],
    ));
    messages
}

// S2-015, R-31, SC-17, S2-082
#[tokio::test]
async fn sub_agent_inherits_the_whole_context() {
    let mut harness = PackHarness::new(REWARDS);
    harness.input.locale = "de".into();
    harness.input.location = Some("Berlin".into());
    harness.memory.session = turn(7, "oat milk offers", "ask_shop", "Here are two.");
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let prior = "Zuvor wurde gefragt: oat milk offers Die Antwort war: Here are two.";
    assert_eq!(
        context(&harness),
        SubagentContext {
            principal: "local".into(),
            user_id: "local".into(),
            episode_id: harness.input.episode_id,
            locale: "de".into(),
            location: Some("Berlin".into()),
            prior_context: Some(prior.into()),
        }
    );
    let request = &harness.requests_of("rewards")[0];
    let episode = harness.input.episode_id;
    let expected = format!(
        "You are rewards.\n\nContext of this request:\n- person: local\n- episode: {episode}\n\
         - locale: de\n- location: Berlin\n- before this: {prior}"
    );
    assert_eq!(request.system, Some(expected));
    assert_eq!(request.locale, "de");
}

// S2-017, D-25
#[tokio::test]
async fn prior_context_is_given_on_a_switch_only() {
    let shop = turn(5, "offers?", "ask_shop", "Two.");
    let talk = [
        message(6, Role::User, vec![ContentBlock::text("thanks")]),
        message(6, Role::Assistant, vec![ContentBlock::text("Welcome.")]),
    ];
    let rewards = turn(7, "points?", "ask_rewards", "Forty.");
    let other_name = turn(8, "deals?", "ask_shopping", "One.");
    let summary = |asked: &str, answer: &str| {
        Some(format!(
            "Earlier the person asked: {asked} The answer was: {answer}"
        ))
    };
    let cases = [
        (vec![], None),
        (shop.clone(), summary("offers?", "Two.")),
        // A turn that asked nobody is no switch, and is looked past.
        ([&shop[..], &talk[..]].concat(), summary("offers?", "Two.")),
        ([&shop[..], &rewards[..]].concat(), None),
        (
            [&rewards[..], &other_name[..]].concat(),
            summary("deals?", "One."),
        ),
        // Both were asked: nothing is new to rewards.
        ([&rewards[..], &asks(7, 99, "ask_shop")[..]].concat(), None),
    ];
    // One that was not executed was not asked: the turn was another's.
    let mut dropped = turn(9, "both?", "ask_shop", "Half.");
    let mut refused = asks(9, 98, "ask_rewards");
    mark_not_executed(&mut refused[1].metadata);
    dropped.extend(refused);
    let cases = cases
        .into_iter()
        .chain([(dropped, summary("both?", "Half."))]);
    for (n, (session, expected)) in cases.enumerate() {
        let mut harness = PackHarness::new(REWARDS);
        harness.memory.session = session;
        harness.run().await;
        assert_eq!(context(&harness).prior_context, expected, "case {n}");
    }
}

// S2-016, FR-5
#[tokio::test]
async fn prior_context_of_the_model_replaces_the_summary() {
    let written = |text: &str| {
        let input = format!("{{query: my points, prior_context: '{text}'}}");
        REWARDS.replace("{query: my points}", &input)
    };
    let summary = "Earlier the person asked: offers? The answer was: Two.";
    let long = "word ".repeat(800);
    for (script, expected) in [
        (written("They plan a breakfast."), "They plan a breakfast."),
        (written("   "), summary),
        (REWARDS.to_owned(), summary),
    ] {
        let mut harness = PackHarness::new(&script);
        harness.memory.session = turn(7, "offers?", "ask_shop", "Two.");
        harness.run().await;
        let prior_context = context(&harness).prior_context;
        assert_eq!(prior_context.as_deref(), Some(expected));
        let request = harness.requests_of("rewards").remove(0);
        let system = request.system.unwrap_or_default();
        assert!(system.ends_with(&format!("- before this: {expected}")));
        let question = request.messages.last().expect("a question");
        assert_eq!(words(&question.content), "my points");
    }
    let harness = PackHarness::new(&written(&long));
    harness.run().await;
    let prior_context = context(&harness).prior_context.unwrap_or_default();
    let chars = prior_context.chars().count();
    assert!(chars <= 2_000 && prior_context.ends_with('…'), "{chars}");
    let requests = harness.requests_of("orchestrator");
    let tools = requests[0].tools.iter();
    let mut asks = tools.filter(|tool| tool.name == "ask_rewards");
    let schema = &asks.next().expect("it can be asked").input_schema;
    assert_eq!(schema["properties"]["prior_context"]["type"], "string");
    assert_eq!(schema["required"], json!(["query"]));
}

// S2-016
#[tokio::test]
async fn inherited_context_does_not_grow_with_the_session() {
    let long = |words: usize| "word ".repeat(words);
    let size = |harness: &PackHarness| {
        let context = serde_json::to_string(&context(harness)).expect("plain data");
        context.len()
    };
    let mut sizes = Vec::new();
    for turns in [1, 50] {
        let mut harness = PackHarness::new(REWARDS);
        for n in 0..turns {
            let turn = turn(100 + n, &long(800), "ask_shop", &long(4_000));
            harness.memory.session.extend(turn);
        }
        assert_eq!(harness.memory.session.len(), 4 * turns as usize);
        harness.run().await;
        let prior = context(&harness).prior_context.expect("a switch");
        assert!(
            prior.chars().count() <= 2_000 && prior.ends_with('…'),
            "{}",
            prior.len()
        );
        sizes.push(size(&harness));
    }
    assert_eq!(sizes[0], sizes[1]);
}

// S2-018
#[tokio::test]
async fn sub_agent_remembers_only_its_own_exchanges() {
    let mut harness = PackHarness::new(REWARDS);
    let old = |role, text: &str| message(7, role, vec![ContentBlock::text(text)]);
    harness.memory.session = turn(7, "SESSIONWORDS", "ask_rewards", "ANSWER");
    harness.memory.agents.lock().extend([
        ("rewards".to_owned(), old(Role::User, "earlier question")),
        ("shop".to_owned(), old(Role::User, "FOREIGN")),
        ("rewards".to_owned(), old(Role::Assistant, "earlier answer")),
    ]);
    harness.run().await;
    let request = harness.requests_of("rewards").remove(0);
    let texts: Vec<_> = request
        .messages
        .iter()
        .map(|message| (message.role, words(&message.content)))
        .collect();
    assert_eq!(
        texts,
        [
            (Role::User, "earlier question".to_owned()),
            (Role::Assistant, "earlier answer".to_owned()),
            (Role::User, "my points".to_owned()),
        ]
    );
    let request_text = format!("{request:?}");
    assert!(!request_text.contains("SESSIONWORDS") && !request_text.contains("FOREIGN"));
    let budget = HistoryBudget {
        messages_max: 20,
        bytes_max: 32_000,
    };
    assert_eq!(
        *harness.memory.asked.lock(),
        [("rewards".to_owned(), budget)]
    );
}

// S2-018
#[tokio::test]
async fn parallel_invocations_are_remembered_in_sequence() {
    const TWICE: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_rewards, input: {query: first}}}, {tool: {name: ask_rewards, input: {query: second}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: rewards}, steps: [{tool: {name: points}}, {text: Forty.}]}
";
    let before = PackHarness::new(TWICE);
    assert_eq!(before.run().await.status, TurnStatus::Ok);
    let harness = PackHarness::new(REWARDS);
    let own = MessageScope::Agent("rewards".into());
    for said in before.recorder.messages() {
        if said.scope == own {
            let mut old = message(7, said.role, said.content);
            old.metadata = said.metadata;
            harness
                .memory
                .agents
                .lock()
                .push(("rewards".to_owned(), old));
        }
    }
    harness.run().await;
    let messages = harness.requests_of("rewards").remove(0).messages;
    let roles: Vec<_> = messages.iter().map(|said| said.role).collect();
    let one = [Role::User, Role::Assistant, Role::Tool, Role::Assistant];
    assert_eq!(roles, [&one[..], &one[..], &[Role::User]].concat());
    assert_eq!(words(&messages[0].content), "first");
    assert_eq!(words(&messages[4].content), "second");
    for exchange in [&messages[..4], &messages[4..8]] {
        let ContentBlock::ToolUse { id, .. } = &exchange[1].content[0] else {
            panic!("{exchange:?}");
        };
        let ContentBlock::ToolResult { tool_use_id, .. } = &exchange[2].content[0] else {
            panic!("{exchange:?}");
        };
        assert_eq!(tool_use_id, id);
    }
}

// S1-144
#[tokio::test]
async fn retained_notes_reach_all_later_sub_agents() {
    let harness = PackHarness::new(REWARDS);
    let note = message(
        7,
        Role::System,
        vec![ContentBlock::text("ticket 12 is open")],
    );
    harness.memory.agents.lock().push(("*".to_owned(), note));
    harness.run().await;
    let system = harness.requests_of("rewards")[0]
        .system
        .clone()
        .expect("one");
    assert!(
        system.ends_with("Kept from earlier turns:\n- ticket 12 is open"),
        "{system}"
    );
    assert!(!format!("{:?}", harness.requests_of("orchestrator")).contains("ticket 12"));
    assert!(!format!("{:?}", harness.recorder.bodies()).contains("ticket 12"));
}

#[tokio::test]
async fn data_for_users_is_not_sent_to_a_model() {
    let mut harness = PackHarness::new("- steps: [{text: Done.}]");
    let data = ContentBlock::Data {
        data_id: "data_1".into(),
        data_type: "offer_list".into(),
        key: json!({}),
        items: json!([{"id": "PLANTED"}]),
    };
    harness.memory.session = vec![message(7, Role::Tool, vec![data])];
    harness.run().await;
    let expected = Arc::new(ModelMessage::new(
        Role::User,
        vec![ContentBlock::text("hi")],
    ));
    assert_eq!(harness.requests_of("orchestrator")[0].messages, [expected]);
}

// S2-015
#[tokio::test]
async fn sub_agent_tools_run_for_the_turn_owner() {
    let script = REWARDS.replace("{text: Forty.}", "{tool: {name: points}}, {text: Forty.}");
    let seen: Arc<Mutex<Option<Arc<ToolContext>>>> = Arc::default();
    let slot = Arc::clone(&seen);
    let mut harness = PackHarness::new(&script).tool(Arc::new(TestTool {
        name: "points",
        tool_type: ToolType::Ccs,
        status: None,
        remember: false,
        work: move |call: ToolInvocation| -> BoxFuture<'static, _> {
            *slot.lock() = Some(call.context);
            Box::pin(async { Ok(json!(1)) })
        },
    }));
    harness.input.location = Some("Berlin".into());
    harness.run().await;
    let tool_context = seen.lock().take().expect("the tool ran");
    let input = &harness.input;
    assert_eq!(tool_context.owner, input.owner);
    assert_eq!(tool_context.agent.as_deref(), Some("rewards"));
    assert_eq!(
        (tool_context.turn_id, tool_context.episode_id),
        (input.turn_id, input.episode_id)
    );
    assert_eq!(
        (&tool_context.locale, &tool_context.location),
        (&input.locale, &input.location)
    );
    let cohort = harness.pack.cohort("local");
    assert_eq!(
        tool_context.dimensions.agent_definition,
        harness.pack.versions(&cohort).agent_definition
    );
    let emissions = harness.recorder.emissions();
    let called = emissions.iter().find(|emission| match &emission.body {
        Body::ToolCalled(tool) => tool.tool_name == "points",
        _ => false,
    });
    assert_eq!(called.expect("it was called").trace, tool_context.trace);
}
