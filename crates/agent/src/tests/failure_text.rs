//! The reply when the orchestrator's own model fails: a text of the pack in the user's language.

use std::sync::Arc;

use turnwire_event::Body;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::port::TurnOutcome;

use super::pack_harness::PackHarness;

/// A script that calls the sub-agent shop alone; `SHOP` is replaced by its rules.
const SINGLE: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}
- {when: {agent: orchestrator}, steps: [{text: I could not look that up.}]}
- {when: {agent: shop}, steps: [SHOP]}
";

fn failed(error: impl Into<TurnError>) -> TurnOutcome {
    TurnOutcome {
        cancelled: None,
        reason: None,
        status: TurnStatus::Failed,
        error: Some(error.into()),
    }
}

// C-06
#[tokio::test]
async fn failed_orchestrator_model_replies_with_a_text() {
    let cases = [
        (
            "- steps: [{error: provider}]",
            ErrorCode::ModelUnavailable,
            "failure.model",
        ),
        (
            "- steps: [{error: rate_limited}]",
            ErrorCode::RateLimitError,
            "failure.rate_limit",
        ),
        (
            "- steps: [{text: Hal}, {error: transport}]",
            ErrorCode::ModelUnavailable,
            "failure.model",
        ),
    ];
    for (script, code, key) in cases {
        // A reply after other text is a paragraph of its own.
        let gap = if script.contains("Hal") { "\n\n" } else { "" };
        for locale in ["en", "de-AT", "xx"] {
            let mut harness = PackHarness::new(script);
            harness.input.locale = locale.into();
            let expected = failed(code);
            assert_eq!(harness.run().await, expected, "{script}");
            let locales = &harness.pack.locales;
            let line = locales.line(locale, key).expect("built in").message;
            let line = format!("{gap}{line}");
            let story = harness.story();
            assert_eq!(
                story[story.len() - 3..],
                [
                    "orchestrator llm.call_started compose".to_owned(),
                    format!("says {line:?}"),
                    "orchestrator llm.call_completed".to_owned()
                ]
            );
            let tag = locales.chain(locale)[0];
            let model = format!("\"model\":\"template:{tag}\"");
            assert!(
                harness
                    .recorder
                    .lines()
                    .iter()
                    .any(|line| line.contains(&model))
            );
        }
    }
}

// C-06
#[tokio::test]
async fn sub_agent_failure_outranks_a_failed_compose() {
    let script = SINGLE
        .replace("SHOP", "{error: provider}")
        .replace("{text: I could not look that up.}", "{error: provider}");
    let harness = PackHarness::new(&script);
    assert_eq!(harness.run().await, failed(TurnError::sub_agent("shop")));
    let line = harness
        .pack
        .locales
        .line("en", "failure.sub_agent")
        .expect("built in");
    let story = harness.story();
    assert_eq!(
        story[story.len() - 5..],
        [
            "orchestrator llm.call_failed provider".to_owned(),
            "orchestrator llm.call_started compose".to_owned(),
            format!("says {:?}", line.message),
            "orchestrator llm.call_completed".to_owned(),
            "subagent:shop agent.error_emit axis 1 final".to_owned(),
        ]
    );
}

#[tokio::test]
async fn built_in_reply_about_a_sub_agent_claims_no_answer() {
    let script = SINGLE.replace("SHOP", "{error: provider}").replace(
        "I could not look that up.}",
        "'I could '}, {error: transport}",
    );
    for (locale, reply) in [
        ("en", "I could not find that out right now."),
        ("de", "Das konnte ich gerade nicht herausfinden."),
        ("es", "Ahora mismo no he podido averiguarlo."),
    ] {
        let mut harness = PackHarness::new(&script);
        harness.input.locale = locale.into();
        harness.run().await;
        let text: String = harness
            .recorder
            .bodies()
            .into_iter()
            .filter_map(|(_, body)| match body {
                Body::TextDelta(delta) => Some(delta.text),
                _ => None,
            })
            .collect();
        let shown = format!("I could \n\n{reply}");
        assert!(text.starts_with(&shown), "{text}");
    }
}

#[tokio::test]
async fn unavailable_orchestrator_model_is_internal_error() {
    let mut harness = PackHarness::new(&SINGLE.replace("SHOP", "{text: never}"));
    let mut pack = turnwire_pack::Pack::clone(&harness.pack);
    pack.orchestrator.model = "nobody:none".into();
    harness.pack = Arc::new(pack);
    let expected = failed(ErrorCode::InternalError);
    assert_eq!(harness.run().await, expected);
    assert!(harness.story().iter().any(|line| line.starts_with("says ")));
}
