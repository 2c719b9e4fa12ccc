//! What is right in a script plays the right call.

mod wrong;

use turnwire_event::{ContentBlock, Role};

use super::reel::Part;
use super::*;
use crate::delta::Delta;
use crate::request::Said;

#[test]
fn the_built_in_script_is_right_and_has_a_minute_to_stop() {
    let script = Script::builtin();
    let reel = script.reel(&request("tell me a long story", 1));
    let seconds: f64 = reel.parts.iter().map(seconds).sum();
    assert!((45.0..90.0).contains(&seconds), "{seconds} s");
}

fn seconds(part: &Part) -> f64 {
    match part {
        Part::Say { delay, times, .. } => {
            delay.as_secs_f64() * part.len() as f64 * f64::from(*times)
        }
        Part::Pause(wait) => wait.as_secs_f64(),
        Part::Stall | Part::Fail(_) => 0.0,
    }
}

fn request(user: &str, call: u32) -> Request {
    Request {
        model: "scripted:default".into(),
        agent: "orchestrator".into(),
        call,
        attempt: 1,
        locale: "en".into(),
        system: None,
        messages: vec![Arc::new(Said::new(
            Role::User,
            vec![ContentBlock::text(user)],
        ))],
        tools: [].into(),
    }
}

fn said(script: &Script, user: &str, call: u32) -> String {
    words(&script.reel(&request(user, call)))
}

fn words(reel: &Reel) -> String {
    let deltas = reel
        .parts
        .iter()
        .flat_map(|part| (0..part.len()).filter_map(|at| part.delta(at)));
    deltas
        .map(|delta| match delta {
            Delta::Text { text, .. } => text,
            Delta::ToolStart { name, .. } => format!("[{name}]"),
            _ => String::new(),
        })
        .collect()
}

fn script(yaml: &str) -> Script {
    Script::parse("s.yaml", yaml).expect("a script")
}

#[test]
fn the_first_rule_that_matches_wins() {
    let script = script(
        "- {when: {user: '^a', agent: shop}, steps: [{text: shop}]}\n\
         - {when: {user: '^a'}, steps: [{text: first}]}\n\
         - {when: {user: 'a'}, steps: [{text: second}]}\n",
    );
    assert_eq!(said(&script, "ab", 1), "first");
    assert_eq!(said(&script, "ba", 1), "second");
    let mut shop = request("ab", 1);
    shop.agent = "shop".into();
    assert_eq!(words(&script.reel(&shop)), "shop");
    assert_eq!(
        said(&script, "x", 1),
        "This script has nothing to say to that. It listens for: ^a, ^a, a"
    );
}

#[test]
fn a_rule_without_call_tells_the_whole_turn() {
    let script = script(
        "- {when: {user: t, call: 2}, steps: [{tool: {name: b}}]}\n\
         - {when: {user: t}, steps: [{text: x}, {tool: {name: a}}, {tool: {name: c}}, {text: y}]}\n",
    );
    let calls: Vec<String> = (1..=4).map(|call| said(&script, "t", call)).collect();
    assert_eq!(calls, ["x[a][c]", "[b]", "y", "y"]);
}

#[test]
fn a_rule_with_call_is_one_message() {
    let script = script("- {when: {call: 1}, steps: [{tool: {name: a}}, {text: y}]}\n");
    assert_eq!(said(&script, "t", 1), "[a]y");
    assert_eq!(
        said(&script, "t", 2),
        "This script has nothing to say to that."
    );
}

#[test]
fn only_what_quotes_is_cut_anew() {
    let script = script(
        "- {when: {user: plain}, steps: [{text: same}]}\n\
         - {steps: [{text: 'you said {{user}}; {{last_tool_result}}'}]}\n",
    );
    let plain = request("plain", 1);
    assert!(Arc::ptr_eq(&script.reel(&plain), &script.reel(&plain)));
    assert_eq!(said(&script, "a {{user}}", 1), "you said a {{user}}; ");
}

#[test]
fn pieces_are_said_as_they_are_written_and_quote_nothing() {
    let script = script(
        "- steps: [{thought: ['{{us', 'er}}'], signature: s}, {said: [I, '', ' {{result.x'], \
         when: {user: x}}, {said: ['}} am']}]",
    );
    let reel = script.reel(&request("x", 1));
    let deltas: Vec<Delta> = reel
        .parts
        .iter()
        .flat_map(|part| (0..part.len()).filter_map(|at| part.delta(at)))
        .collect();
    let thought = |text: &str, signature: Option<&str>| Delta::Thinking {
        block: 0,
        text: text.into(),
        signature: signature.map(str::to_owned),
    };
    let said = |text: &str| Delta::Text {
        block: 1,
        text: text.into(),
    };
    assert_eq!(
        deltas,
        [
            thought("{{us", None),
            thought("er}}", Some("s")),
            said("I"),
            said(" {{result.x"),
            said("}} am"),
        ]
    );
}

#[test]
fn a_rule_can_be_for_exact_words_and_for_one_turn() {
    let script = script(
        "- {when: {says: 'a.'}, steps: [{text: exact}]}\n\
         - {when: {user: a, turn: 2}, steps: [{text: second}]}\n\
         - {steps: [{text: other}]}\n",
    );
    assert_eq!(said(&script, "a.", 1), "exact");
    assert_eq!(said(&script, "ab", 1), "other");
    let mut later = request("first", 1);
    let more = vec![ContentBlock::text("ab")];
    later.messages.push(Arc::new(Said::new(Role::User, more)));
    assert_eq!(words(&script.reel(&later)), "second");
}

#[test]
fn a_rule_hears_the_language_and_its_narrower_kinds() {
    let script = script(
        "- {when: {locale: de}, steps: [{text: hallo}]}\n\
         - {steps: [{texts: {en: hello, es: hola}}]}\n",
    );
    let said = |locale: &str| {
        let mut request = request("x", 1);
        request.locale = locale.into();
        words(&script.reel(&request))
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
        assert_eq!(said(locale), expected, "{locale}");
    }
}

/// Puts a tool's answer at the end of what was said.
fn answered(request: &mut Request, tool: &str, content: &str, is_error: bool) {
    let id = turnwire_event::ToolUseId(turnwire_event::Ulid(request.messages.len() as u128));
    let asks = ContentBlock::ToolUse {
        id,
        name: tool.into(),
        input: serde_json::json!({}),
    };
    let answers = ContentBlock::ToolResult {
        tool_use_id: id,
        content: content.into(),
        is_error,
    };
    for (role, block) in [(Role::Assistant, asks), (Role::Tool, answers)] {
        let content = vec![block];
        request.messages.push(Arc::new(Said::new(role, content)));
    }
}

#[test]
fn rules_and_steps_hear_what_tools_have_answered() {
    let script = script(
        "- {when: {result: empty}, steps: [{text: newest}]}\n\
         - steps:\n\
         \x20   - {text: '[s {{result.shop.text}}]', when: {answered: shop}}\n\
         \x20   - {text: '[s failed]', when: {failed: shop}}\n\
         \x20   - {text: '[p gold]', when: {results: {points: gold, shop: '.'}}}\n\
         \x20   - {text: '[no x]', when: {user: [y, z], not: [x, w]}}\n\
         \x20   - {text: '.'}\n",
    );
    let mut asked = request("x", 2);
    assert_eq!(words(&script.reel(&asked)), ".");
    answered(&mut asked, "shop", "empty", false);
    assert_eq!(words(&script.reel(&asked)), "newest");
    answered(&mut asked, "shop", r#"{"text":"milk"}"#, false);
    assert_eq!(words(&script.reel(&asked)), "[s milk].");
    answered(&mut asked, "points", "gold", false);
    assert_eq!(words(&script.reel(&asked)), "[s milk][p gold].");
    answered(&mut asked, "shop", "no", true);
    assert_eq!(words(&script.reel(&asked)), "[s failed][p gold].");
    for (user, expected) in [("yz", "[no x]."), ("y", "."), ("yzw", ".")] {
        assert_eq!(said(&script, user, 1), expected, "{user}");
    }
}

#[test]
fn patterns_are_defined_once_and_taken_by_their_anchors() {
    let script = script(
        "- define: {fruit: &fruit 'apple|pear', no: &no 'worm'}\n\
         - {when: {user: *fruit, not: *no}, steps: [{text: yum}]}\n\
         - {steps: [{text: no}]}\n",
    );
    for (user, expected) in [("a pear", "yum"), ("a pear with a worm", "no"), ("x", "no")] {
        assert_eq!(said(&script, user, 1), expected, "{user}");
    }
}

#[test]
fn answers_are_counted_since_the_model_last_spoke() {
    let script = script("- steps: [{text: '[both]', when: {answers: 2}}, {text: '.'}]");
    let mut asked = request("x", 2);
    answered(&mut asked, "shop", "milk", false);
    answered(&mut asked, "points", "gold", false);
    assert_eq!(words(&script.reel(&asked)), ".");
    // The same two, asked for in one message.
    asked.messages.swap(2, 3);
    assert_eq!(words(&script.reel(&asked)), "[both].");
}

#[test]
fn several_files_are_one_script_in_the_order_of_their_names() {
    let files = [
        ("20-rest.yaml", "- steps: [{text: rest}]"),
        (
            "10-hello.yaml",
            "- {when: {user: hello}, steps: [{text: hi}]}",
        ),
    ];
    let script = Script::parse_many(&files).expect("a script");
    assert_eq!(said(&script, "hello", 1), "hi");
    assert_eq!(said(&script, "x", 1), "rest");
    let wrong = Script::parse_many(&[files[0], ("30.yaml", "- steps: []")]);
    let wrong = wrong.expect_err("no steps").to_string();
    assert!(wrong.starts_with("30.yaml:1:10: "), "{wrong}");
    let none: [(&str, &str); 0] = [];
    let empty = Script::parse_many(&none).expect("no rules");
    assert_eq!(
        said(&empty, "x", 1),
        "This script has nothing to say to that."
    );
}

#[test]
fn names_come_with_their_places_and_who_speaks_there() {
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
                n.what,
                n.name.as_str(),
            )
        })
        .collect();
    let (shop, chief) = (Some("shop"), Some("chief"));
    assert_eq!(
        names,
        [
            (1, 17, None, Subject::Agent, "shop"),
            (1, 33, shop, Subject::Result, "find"),
            (3, 20, shop, Subject::Tool, "search"),
            (3, 35, shop, Subject::Result, "find"),
            (4, 58, shop, Subject::Agent, "chief"),
            (4, 14, chief, Subject::Result, "look"),
            (5, 24, None, Subject::Result, "any"),
        ]
    );
    assert!(script.names().iter().all(|named| named.file == "s.yaml"));
}
