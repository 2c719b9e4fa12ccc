//! What a request contains: the history of the session, the user message once, and the tools.

use std::sync::Arc;

use serde_json::json;
use turnwire_event::code::TurnStatus;
use turnwire_event::port::HistoryBudget;
use turnwire_event::{ContentBlock, Role, ToolUseId, Ulid};
use turnwire_model::{ModelMessage, ToolSpec};
use turnwire_tool::Toolbox;

use super::turn_harness::{CountingIdGenerator, FixedHistory, TurnHarness, input, message};
use crate::options::AgentOptions;
use crate::standalone_agent::StandaloneAgent;

fn said(role: Role, text: &str) -> Arc<ModelMessage> {
    Arc::new(ModelMessage::new(role, vec![ContentBlock::text(text)]))
}

#[tokio::test]
async fn history_precedes_the_user_message() {
    let cancelled = ContentBlock::ToolUse {
        id: ToolUseId(Ulid(5)),
        name: "echo".into(),
        input: json!({}),
    };
    let old = [
        message(1, Role::User, vec![ContentBlock::text("before")]),
        message(
            1,
            Role::Assistant,
            vec![ContentBlock::text("answer"), cancelled],
        ),
    ];
    let now = message(2, Role::User, vec![ContentBlock::text("hi")]);
    let expected = [
        said(Role::User, "before"),
        said(Role::Assistant, "answer"),
        said(Role::User, "hi"),
    ];
    // The words are the last of the history, or were too large for it.
    for past in [[&old[..], &[now]].concat(), old.to_vec()] {
        let mut harness =
            TurnHarness::script("- steps: [{text: ok}]").tool("echo", |_| async { Ok(json!(1)) });
        harness.past = FixedHistory(Ok(past));
        harness.options.system = Some("Be kind.".into());
        let provider = Arc::clone(&harness.provider);
        assert_eq!(harness.run().await.status, TurnStatus::Ok);
        let requests = provider.requests.lock();
        assert_eq!(requests[0].messages, expected);
        assert_eq!(requests[0].system.as_deref(), Some("Be kind."));
        assert_eq!(requests[0].agent, "orchestrator");
        assert_eq!(
            requests[0].tools[..],
            [ToolSpec {
                name: "echo".into(),
                description: "does what a test says".into(),
                input_schema: json!({"type": "object"}),
            }]
        );
    }
}

#[test]
fn assembly_has_the_builtin_versions() {
    let harness = TurnHarness::script("- steps: [{text: ok}]");
    let agent = StandaloneAgent::new(
        AgentOptions::default(),
        harness.provider,
        Toolbox::new(),
        Arc::new(CountingIdGenerator::default()),
    );
    let versions = agent.assemble(&input()).versions;
    assert_eq!(versions.agent_definition, "builtin-1");
    assert_eq!(
        agent.history(),
        HistoryBudget {
            messages_max: 200,
            bytes_max: 1_048_576,
        }
    );
}
