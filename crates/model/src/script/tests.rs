//! Valid scripts play the right call. Rules, conditions, calls of a turn, locales and tool results
//! are covered; `mistakes` has the invalid scripts.

mod mistakes;

use turnwire_event::{ContentBlock, Role};

use super::call_plan::PlanPart;
use super::*;
use crate::delta::Delta;
use crate::request::ModelMessage;

#[test]
fn builtin_script_has_an_answer_of_about_a_minute() {
    let script = ModelScript::builtin();
    let plan = script.plan(&request("tell me a long story", 1));
    let seconds: f64 = plan.parts.iter().map(seconds).sum();
    assert!((45.0..90.0).contains(&seconds), "{seconds} s");
}

fn seconds(part: &PlanPart) -> f64 {
    match part {
        PlanPart::Stream { delay, times, .. } => {
            delay.as_secs_f64() * part.len() as f64 * f64::from(*times)
        }
        PlanPart::Pause(wait) => wait.as_secs_f64(),
        PlanPart::Stall | PlanPart::Fail(_) => 0.0,
    }
}

fn request(user: &str, call: u32) -> ModelRequest {
    ModelRequest {
        model: "scripted:default".into(),
        agent: "orchestrator".into(),
        call,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages: vec![Arc::new(ModelMessage::new(
            Role::User,
            vec![ContentBlock::text(user)],
        ))],
        tools: [].into(),
    }
}

fn played_text(script: &ModelScript, user: &str, call: u32) -> String {
    plan_text(&script.plan(&request(user, call)))
}

fn plan_text(plan: &CallPlan) -> String {
    let deltas = plan
        .parts
        .iter()
        .flat_map(|part| (0..part.len()).filter_map(|index| part.delta(index)));
    deltas
        .map(|delta| match delta {
            Delta::Text { text, .. } => text,
            Delta::ToolStart { name, .. } => format!("[{name}]"),
            _ => String::new(),
        })
        .collect()
}

fn script(yaml: &str) -> ModelScript {
    ModelScript::parse("s.yaml", yaml).expect("a script")
}

#[test]
fn first_matching_rule_wins() {
    let script = script(
        "- {when: {user: '^a', agent: shop}, steps: [{text: shop}]}\n\
         - {when: {user: '^a'}, steps: [{text: first}]}\n\
         - {when: {user: 'a'}, steps: [{text: second}]}\n",
    );
    assert_eq!(played_text(&script, "ab", 1), "first");
    assert_eq!(played_text(&script, "ba", 1), "second");
    let mut shop = request("ab", 1);
    shop.agent = "shop".into();
    assert_eq!(plan_text(&script.plan(&shop)), "shop");
    assert_eq!(
        played_text(&script, "x", 1),
        "This script has nothing to say to that. It listens for: ^a, ^a, a"
    );
}

#[test]
fn rule_without_call_covers_the_whole_turn() {
    let script = script(
        "- {when: {user: t, call: 2}, steps: [{tool: {name: b}}]}\n\
         - {when: {user: t}, steps: [{text: x}, {tool: {name: a}}, {tool: {name: c}}, {text: y}]}\n",
    );
    let calls: Vec<String> = (1..=4)
        .map(|call| played_text(&script, "t", call))
        .collect();
    assert_eq!(calls, ["x[a][c]", "[b]", "y", "y"]);
}

#[test]
fn rule_with_call_covers_one_call() {
    let script = script("- {when: {call: 1}, steps: [{tool: {name: a}}, {text: y}]}\n");
    assert_eq!(played_text(&script, "t", 1), "[a]y");
    assert_eq!(
        played_text(&script, "t", 2),
        "This script has nothing to say to that."
    );
}

#[test]
fn plan_is_shared_unless_it_has_placeholders() {
    let script = script(
        "- {when: {user: plain}, steps: [{text: same}]}\n\
         - {steps: [{text: 'you said {{user}}; {{last_tool_result}}'}]}\n",
    );
    let plain = request("plain", 1);
    assert!(Arc::ptr_eq(&script.plan(&plain), &script.plan(&plain)));
    assert_eq!(
        played_text(&script, "a {{user}}", 1),
        "you said a {{user}}; "
    );
}

#[test]
fn fixed_pieces_are_streamed_unchanged() {
    let script = script(
        "- steps: [{thought: ['{{us', 'er}}'], signature: s}, {said: [I, '', ' {{result.x'], \
         when: {user: x}}, {said: ['}} am']}]",
    );
    let plan = script.plan(&request("x", 1));
    let deltas: Vec<Delta> = plan
        .parts
        .iter()
        .flat_map(|part| (0..part.len()).filter_map(|index| part.delta(index)))
        .collect();
    let thought = |text: &str, signature: Option<&str>| Delta::Thinking {
        block: 0,
        text: text.into(),
        signature: signature.map(str::to_owned),
    };
    let played_text = |text: &str| Delta::Text {
        block: 1,
        text: text.into(),
    };
    assert_eq!(
        deltas,
        [
            thought("{{us", None),
            thought("er}}", Some("s")),
            played_text("I"),
            played_text(" {{result.x"),
            played_text("}} am"),
        ]
    );
}

#[test]
fn rule_can_require_exact_text_and_a_turn() {
    let script = script(
        "- {when: {says: 'a.'}, steps: [{text: exact}]}\n\
         - {when: {user: a, turn: 2}, steps: [{text: second}]}\n\
         - {steps: [{text: other}]}\n",
    );
    assert_eq!(played_text(&script, "a.", 1), "exact");
    assert_eq!(played_text(&script, "ab", 1), "other");
    let mut later_request = request("first", 1);
    let second_message = vec![ContentBlock::text("ab")];
    later_request
        .messages
        .push(Arc::new(ModelMessage::new(Role::User, second_message)));
    assert_eq!(plan_text(&script.plan(&later_request)), "second");
}

#[test]
fn locale_condition_matches_more_specific_tags() {
    let script = script(
        "- {when: {locale: de}, steps: [{text: hallo}]}\n\
         - {steps: [{texts: {en: hello, es: hola}}]}\n",
    );
    let played_text = |locale: &str| {
        let mut request = request("x", 1);
        request.locale = locale.into();
        plan_text(&script.plan(&request))
    };
    for (locale, expected) in [
        ("de", "hallo"),
        ("DE-at", "hallo"),
        ("de_AT", "hallo"),
        ("den", "hello"),
        ("d", "hello"),
        ("", "hello"),
        ("en-GB", "hello"),
        ("es-MX", "hola"),
    ] {
        assert_eq!(played_text(locale), expected, "{locale}");
    }
}

/// Appends a tool use and its result to a request.
fn push_tool_result(request: &mut ModelRequest, tool: &str, content: &str, is_error: bool) {
    let id = turnwire_event::ToolUseId(turnwire_event::Ulid(request.messages.len() as u128));
    let tool_use = ContentBlock::ToolUse {
        id,
        name: tool.into(),
        input: serde_json::json!({}),
    };
    let tool_result = ContentBlock::ToolResult {
        tool_use_id: id,
        content: content.into(),
        is_error,
    };
    for (role, block) in [(Role::Assistant, tool_use), (Role::Tool, tool_result)] {
        let content = vec![block];
        request
            .messages
            .push(Arc::new(ModelMessage::new(role, content)));
    }
}

#[test]
fn conditions_test_tool_results() {
    let script = script(
        "- {when: {result: empty}, steps: [{text: newest}]}\n\
         - steps:\n\
         \x20   - {text: '[s {{result.shop.text}}]', when: {answered: shop}}\n\
         \x20   - {text: '[s failed]', when: {failed: shop}}\n\
         \x20   - {text: '[p gold]', when: {results: {points: gold, shop: '.'}}}\n\
         \x20   - {text: '[no x]', when: {user: [y, z], not: [x, w]}}\n\
         \x20   - {text: '.'}\n",
    );
    let mut request = request("x", 2);
    assert_eq!(plan_text(&script.plan(&request)), ".");
    push_tool_result(&mut request, "shop", "empty", false);
    assert_eq!(plan_text(&script.plan(&request)), "newest");
    push_tool_result(&mut request, "shop", r#"{"text":"milk"}"#, false);
    assert_eq!(plan_text(&script.plan(&request)), "[s milk].");
    push_tool_result(&mut request, "points", "gold", false);
    assert_eq!(plan_text(&script.plan(&request)), "[s milk][p gold].");
    push_tool_result(&mut request, "shop", "no", true);
    assert_eq!(plan_text(&script.plan(&request)), "[s failed][p gold].");
    for (user, expected) in [("yz", "[no x]."), ("y", "."), ("yzw", ".")] {
        assert_eq!(played_text(&script, user, 1), expected, "{user}");
    }
}

#[test]
fn defined_patterns_are_used_by_their_anchors() {
    let script = script(
        "- define: {fruit: &fruit 'apple|pear', no: &no 'worm'}\n\
         - {when: {user: *fruit, not: *no}, steps: [{text: yum}]}\n\
         - {steps: [{text: no}]}\n",
    );
    for (user, expected) in [("a pear", "yum"), ("a pear with a worm", "no"), ("x", "no")] {
        assert_eq!(played_text(&script, user, 1), expected, "{user}");
    }
}

#[test]
fn answers_condition_counts_results_since_last_message() {
    let script = script("- steps: [{text: '[both]', when: {answers: 2}}, {text: '.'}]");
    let mut request = request("x", 2);
    push_tool_result(&mut request, "shop", "milk", false);
    push_tool_result(&mut request, "points", "gold", false);
    assert_eq!(plan_text(&script.plan(&request)), ".");
    // The same two, asked for in one message.
    request.messages.swap(2, 3);
    assert_eq!(plan_text(&script.plan(&request)), "[both].");
}

#[test]
fn files_form_one_script_in_order_of_their_names() {
    let files = [
        ("20-rest.yaml", "- steps: [{text: rest}]"),
        (
            "10-hello.yaml",
            "- {when: {user: hello}, steps: [{text: hi}]}",
        ),
    ];
    let script = ModelScript::parse_many(&files).expect("a script");
    assert_eq!(played_text(&script, "hello", 1), "hi");
    assert_eq!(played_text(&script, "x", 1), "rest");
    let error = ModelScript::parse_many(&[files[0], ("30.yaml", "- steps: []")]);
    let error = error.expect_err("no steps").to_string();
    assert!(error.starts_with("30.yaml:1:10: "), "{error}");
    let no_files: [(&str, &str); 0] = [];
    let empty = ModelScript::parse_many(&no_files).expect("no rules");
    assert_eq!(
        played_text(&empty, "x", 1),
        "This script has nothing to say to that."
    );
}

#[test]
fn names_have_their_location_and_agent() {
    let script = script(
        "- when: {agent: shop, answered: find}\n\
         \x20 steps:\n\
         \x20   - tool: {name: search, input: {q: ['{{result.find.x}}']}}\n\
         \x20   - {text: 'a {{user}} {{result.look}}', when: {agent: chief}}\n\
         - steps: [{texts: {en: '{{result.any.*}}'}}]\n",
    );
    let names: Vec<_> = script
        .names()
        .iter()
        .map(|n| {
            (
                n.line,
                n.column,
                n.agent.as_deref(),
                n.kind,
                n.name.as_str(),
            )
        })
        .collect();
    let (shop, chief) = (Some("shop"), Some("chief"));
    assert_eq!(
        names,
        [
            (1, 17, None, ReferenceKind::Agent, "shop"),
            (1, 33, shop, ReferenceKind::Result, "find"),
            (3, 20, shop, ReferenceKind::Tool, "search"),
            (3, 35, shop, ReferenceKind::Result, "find"),
            (4, 58, shop, ReferenceKind::Agent, "chief"),
            (4, 14, chief, ReferenceKind::Result, "look"),
            (5, 24, None, ReferenceKind::Result, "any"),
        ]
    );
    assert!(script.names().iter().all(|named| named.file == "s.yaml"));
}
