//! Translations of single events and their bounds.

use serde_json::json;
use turnwire_event::code::ToolType;
use turnwire_event::{EventType, Ulid};

use super::*;
use crate::tools::OPEN_MAX;

/// Counts up.
struct Counter(std::sync::atomic::AtomicU64);

impl IdGenerator for Counter {
    fn ulid(&self) -> Ulid {
        Ulid(u128::from(
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        ))
    }
}

fn ids() -> Arc<dyn IdGenerator> {
    Arc::new(Counter(1.into()))
}

fn kinds(emissions: &[Emission]) -> Vec<EventType> {
    emissions
        .iter()
        .map(|emission| emission.body.kind())
        .collect()
}

fn applied(translation: &mut Translation, event: InnerEvent) -> Emissions {
    translation.apply(event).expect("translated")
}

#[test]
fn pieces_of_one_kind_are_one_block_of_one_message() {
    let mut translation = Translation::streaming(ids(), "relay:a", "me");
    let text = |text: &str| InnerEvent::Text(text.into());
    let first = applied(&mut translation, text("a"));
    assert_eq!(
        kinds(&first),
        [EventType::MessageStart, EventType::TextDelta]
    );
    let mut blocks = Vec::new();
    for event in [
        text("b"),
        InnerEvent::Reasoning("c".into()),
        text(""),
        text("d"),
    ] {
        for emission in applied(&mut translation, event) {
            match emission.body {
                Body::TextDelta(delta) => blocks.push(delta.content_block_index),
                Body::ThinkingDelta(delta) => blocks.push(delta.content_block_index),
                body => panic!("{body:?}"),
            }
        }
    }
    assert_eq!(blocks, [0, 1, 2]);
}

// S1-038, S1-035
#[test]
fn upstream_says_which_reasoning_comes_after_text() {
    let mut translation = Translation::streaming(ids(), "relay:a", "me");
    let mut kinds = Vec::new();
    for event in [
        InnerEvent::Reasoning("a".into()),
        InnerEvent::Text("b".into()),
        InnerEvent::Thinking("c".into()),
        InnerEvent::Reasoning("d".into()),
    ] {
        for emission in applied(&mut translation, event) {
            if let Body::ThinkingDelta(delta) = emission.body {
                kinds.push((delta.text, delta.content_block_index, delta.after_text));
            }
        }
    }
    let expected = [("a", 0, true), ("c", 2, false), ("d", 3, true)];
    assert_eq!(
        kinds,
        expected.map(|(text, block, after)| (text.to_owned(), block, after))
    );
}

// S1-043, S1-070
#[test]
fn status_is_of_the_sub_agent_that_reports() {
    let mut translation = Translation::streaming(ids(), "relay:a", "me");
    for (id, name, tool_type) in [
        ("c1", "ask_shop", ToolType::Function),
        ("c2", "rewards", ToolType::SubAgent),
        ("c3", "search", ToolType::Mcp),
    ] {
        let start = InnerEvent::ToolCallStart {
            id: id.into(),
            name: name.into(),
            tool_type,
        };
        applied(&mut translation, start);
    }
    let mut reporter = |sub_agent_id: Option<&str>, tool_id: Option<&str>| {
        let status = InnerEvent::Status {
            event_id: "searching_offers".into(),
            sub_agent_id: sub_agent_id.map(str::to_owned),
            tool_id: tool_id.map(str::to_owned),
        };
        let [emission] = &applied(&mut translation, status)[..] else {
            panic!("one emission")
        };
        emission.actor.to_string()
    };
    assert_eq!(reporter(None, None), "orchestrator");
    assert_eq!(reporter(None, Some("c1")), "subagent:shop");
    assert_eq!(reporter(None, Some("c2")), "subagent:rewards");
    assert_eq!(reporter(None, Some("c3")), "orchestrator");
    assert_eq!(reporter(None, Some("shop")), "orchestrator", "no tool call");
    assert_eq!(reporter(Some("support"), Some("c1")), "subagent:support");
}

#[test]
fn blocks_and_open_tools_are_bounded() {
    let mut translation = Translation::streaming(ids(), "relay:a", "me");
    let alternate = |n: u32| match n % 2 {
        0 => InnerEvent::Text("t".into()),
        _ => InnerEvent::Reasoning("r".into()),
    };
    for n in 0..BLOCKS_MAX {
        applied(&mut translation, alternate(n));
    }
    let refused = translation.apply(alternate(BLOCKS_MAX));
    assert_eq!(refused, Err(UpstreamFault::Malformed));

    let mut translation = Translation::streaming(ids(), "relay:a", "me");
    let start = |n: usize| InnerEvent::ToolCallStart {
        id: n.to_string(),
        name: "search".into(),
        tool_type: ToolType::Function,
    };
    for n in 0..OPEN_MAX {
        assert_eq!(applied(&mut translation, start(n)).len(), 1);
    }
    assert!(applied(&mut translation, start(0)).is_empty(), "it is open");
    assert_eq!(
        translation.apply(start(OPEN_MAX)),
        Err(UpstreamFault::Malformed)
    );
    assert_eq!(translation.close_tools().len(), OPEN_MAX);
}

// S2-013
#[test]
fn text_of_a_sub_agent_is_collected_and_bounded() {
    let mut translation = Translation::collecting(ids(), "shop", "me");
    let long = "é".repeat(40_000);
    for event in [
        InnerEvent::Reasoning("thought".into()),
        InnerEvent::Text("oat ".into()),
        InnerEvent::Text(long.clone()),
    ] {
        assert!(applied(&mut translation, event).is_empty());
    }
    let text = translation.take_text();
    assert!(text.starts_with("oat é") && text.len() <= ANSWER_BYTES_MAX);
    assert!(text.len() > ANSWER_BYTES_MAX - 2);
}

// law 9
#[test]
fn data_of_another_principal_is_not_shown() {
    let envelope = |principal: &str| {
        json!({
            "enricher_id": "offer_search", "principal": principal, "status": "ok",
            "payload": {"items": [{"id": "OFF_1"}]},
        })
    };
    let bare = |principal: Value| json!({"principal": principal, "items": [{"id": "OFF_1"}]});
    for (content, shown) in [
        (envelope("me"), 2),
        (envelope("you"), 0),
        (bare("me".into()), 2),
        (bare("you".into()), 0),
        // What is owed of a loan.
        (bare(120_000.into()), 2),
        (json!({"items": [{"id": "OFF_1", "principal": "you"}]}), 0),
        (json!({"items": [{"id": "OFF_1", "principal": "me"}]}), 2),
        (json!({"component": {"principal": "you"}}), 0),
        (
            json!({"enricher_id": "offer_search", "principal": "me", "payload": {"principal": "you"}}),
            0,
        ),
        (
            json!({
                "enricher_id": "offer_search", "principal": "me",
                "payload": {"items": [{"principal": "you"}]},
            }),
            0,
        ),
    ] {
        let mut translation = Translation::streaming(ids(), "relay:a", "me");
        applied(
            &mut translation,
            InnerEvent::ToolCallStart {
                id: "c1".into(),
                name: "render_offer_list".into(),
                tool_type: ToolType::Render,
            },
        );
        let about = content.to_string();
        let emissions = applied(
            &mut translation,
            InnerEvent::ToolResult {
                id: "c1".into(),
                content,
            },
        );
        assert_eq!(emissions.len(), shown, "{about}");
        let told = format!("{emissions:?}");
        assert!(
            !told.contains("offer_search"),
            "no field of the envelope: {told}"
        );
    }
}

// S1-036, D-18
#[test]
fn result_is_shown_before_and_after_the_end_of_its_tool() {
    let start = || InnerEvent::ToolCallStart {
        id: "c1".into(),
        name: "render_card".into(),
        tool_type: ToolType::Render,
    };
    let result = || InnerEvent::ToolResult {
        id: "c1".into(),
        content: json!({"title": "Oat milk"}),
    };
    let end = || InnerEvent::ToolCallEnd {
        id: "c1".into(),
        is_error: false,
    };
    use EventType::{ComponentRendered, ToolCalled, ToolCompleted};
    for (events, expected) in [
        (
            [start(), result(), end()],
            [ToolCalled, ComponentRendered, ToolCompleted],
        ),
        (
            [start(), end(), result()],
            [ToolCalled, ToolCompleted, ComponentRendered],
        ),
    ] {
        let mut translation = Translation::streaming(ids(), "relay:a", "me");
        let emissions: Emissions = events
            .into_iter()
            .flat_map(|event| applied(&mut translation, event))
            .collect();
        assert_eq!(kinds(&emissions), expected);
        assert!(applied(&mut translation, result()).is_empty(), "shown once");
    }
}
