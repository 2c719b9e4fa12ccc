//! What is said when the model that speaks is itself what failed: a sentence of the pack, in the
//! person's language, as if it were a model's.

use std::sync::Arc;

use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::port::Outcome;

use super::pack_stage::Troupe;

/// Shop is asked alone; what it does is put in for `SHOP`.
const SINGLE: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}
- {when: {agent: orchestrator}, steps: [{text: I could not look that up.}]}
- {when: {agent: shop}, steps: [SHOP]}
";

fn failed(error: impl Into<TurnError>) -> Outcome {
    Outcome {
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
            ErrorCode::InternalError,
            "failure.internal",
        ),
        (
            "- steps: [{error: rate_limited}]",
            ErrorCode::RateLimitError,
            "failure.rate_limit",
        ),
        (
            "- steps: [{text: Hal}, {error: transport}]",
            ErrorCode::InternalError,
            "failure.internal",
        ),
    ];
    for (script, code, key) in cases {
        for locale in ["en", "de-AT", "xx"] {
            let mut troupe = Troupe::new(script);
            troupe.input.locale = locale.into();
            let expected = failed(code);
            assert_eq!(troupe.play().await, expected, "{script}");
            let locales = &troupe.pack.locales;
            let line = locales.line(locale, key).expect("built in").message;
            let story = troupe.story();
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
                troupe
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
    let troupe = Troupe::new(&script);
    assert_eq!(troupe.play().await, failed(TurnError::sub_agent("shop")));
    let line = troupe
        .pack
        .locales
        .line("en", "failure.sub_agent")
        .expect("built in");
    let story = troupe.story();
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
async fn unavailable_orchestrator_model_is_internal_error() {
    let mut troupe = Troupe::new(&SINGLE.replace("SHOP", "{text: never}"));
    let mut pack = turnwire_pack::Pack::clone(&troupe.pack);
    pack.orchestrator.model = "nobody:none".into();
    troupe.pack = Arc::new(pack);
    let expected = failed(ErrorCode::InternalError);
    assert_eq!(troupe.play().await, expected);
    assert!(troupe.story().iter().any(|line| line.starts_with("says ")));
}
