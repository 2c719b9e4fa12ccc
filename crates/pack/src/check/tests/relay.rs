//! Mistakes in the `relay` block of an agent.

use super::*;
use turnwire_event::code::InnerType;

use crate::pack::provider::ApiKeySource;

/// The orchestrator of the good pack with other lines behind its description.
fn orchestrator(lines: &str) -> String {
    format!(
        "id: orchestrator\nversion: \"1\"\nkind: orchestrator\ndescription: Runs elsewhere.\n{lines}"
    )
}

/// What is said of a small pack with this orchestrator.
fn told(lines: &str) -> Vec<String> {
    let files = PackFiles::from_pairs([
        (
            "pack.yaml",
            "name: far\nversion: \"1.0.0\"\ndefault_locale: en\n",
        ),
        ("orchestrator.yaml", &orchestrator(lines)),
    ]);
    let report = check(&files, &vars);
    report.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn relay_needs_an_address_and_nothing_of_a_native_agent() {
    assert_eq!(
        told("relay:\n  url: http://127.0.0.1:9000/turns\n"),
        [""; 0]
    );
    let cases: [(&str, &str); 17] = [
        (
            "sub_agents: [shop]\nrelay: {url: \"http://a\"}\n",
            "orchestrator.yaml:5:14: error: `sub_agents` has no effect beside `relay`",
        ),
        (
            "relay: {url: \"http://a\", dialect: openai_chat}\n",
            "orchestrator.yaml:5:8: error: `model` is missing: `openai_chat` asks for one by name",
        ),
        (
            "relay: {url: \"http://a\", model: m}\n",
            "orchestrator.yaml:5:33: error: `model` has no effect in the dialect `turnwire`",
        ),
        (
            "relay: {dialect: turnwire}\n",
            "orchestrator.yaml:5:8: error: `url` is missing",
        ),
        (
            "relay: {url: ftp://a}\n",
            "orchestrator.yaml:5:14: error: the url does not begin with http:// or https://",
        ),
        (
            "relay: {url: \"http://169.254.169.254/\"}\n",
            "orchestrator.yaml:5:14: error: the url is an address that is never asked",
        ),
        (
            "relay: {url: \"${NOWHERE}\"}\n",
            "orchestrator.yaml:5:14: error: the variable `NOWHERE` is not set",
        ),
        (
            "relay: {url: \"http://a\", dialect: soap}\n",
            "orchestrator.yaml:5:35: error: unknown dialect `soap`",
        ),
        (
            "relay: {url: \"http://a\", key: sk-123}\n",
            "orchestrator.yaml:5:31: error: a key is never written into a pack",
        ),
        (
            "relay: {url: \"http://a\", history: all}\n",
            "orchestrator.yaml:5:35: error: `history` is `all`; write: `none` or `{last: 20}`",
        ),
        (
            "relay: {url: \"http://a\", map: {token: txt}}\n",
            "orchestrator.yaml:5:39: error: unknown token `txt`, did you mean `text`?",
        ),
        (
            "relay: {url: \"http://a\", map: {token: weather}}\n",
            "orchestrator.yaml:5:39: error: unknown token `weather`; write: one of `text`",
        ),
        (
            "relay: {url: \"http://a\", dialect: openai_chat, model: m, map: {token: text}}\n",
            "orchestrator.yaml:5:64: error: `map` has no effect in the dialect `openai_chat`",
        ),
        (
            "relay: {url: \"http://a\", map: {\"\": text}}\n",
            "orchestrator.yaml:5:32: error: a type in `map` is empty or has a control character",
        ),
        (
            "relay: {url: \"http://a\", dialect: openai_chat, model: \" \"}\n",
            "orchestrator.yaml:5:55: error: `model` is empty or has a control character",
        ),
        (
            "relay: {url: \"http://a\", maps: {}}\n",
            "orchestrator.yaml:5:26: error: unknown field `maps`",
        ),
        (
            "model: default\nrelay: {url: \"http://a\"}\n",
            "orchestrator.yaml:5:8: error: `model` has no effect beside `relay`",
        ),
    ];
    for (lines, expected) in cases {
        let told = told(lines);
        assert!(
            told.iter().any(|line| line.starts_with(expected)),
            "{lines}: {told:#?}"
        );
        assert!(!told.iter().any(|line| line.contains("sk-123")), "{told:?}");
    }
}

#[test]
fn relay_block_is_read_with_its_defaults() {
    let relay = |lines: &str| {
        let files = PackFiles::from_pairs([
            (
                "pack.yaml",
                "name: far\nversion: \"1.0.0\"\ndefault_locale: en\n",
            ),
            ("orchestrator.yaml", orchestrator(lines).as_str()),
        ]);
        let pack = check(&files, &vars).pack.expect("a pack");
        assert!(pack.uses.is_empty(), "no model is used");
        pack.orchestrator.relay.expect("a relay")
    };
    let plain = relay("relay: {url: \"${LLM}turns\"}\n");
    assert_eq!(plain.url, "http://127.0.0.1:8090/v1/turns");
    assert_eq!(
        (plain.key, plain.cancel_url, plain.history),
        (ApiKeySource::None, None, 0)
    );
    let full = relay(
        "relay:\n  url: http://a/turns\n  cancel_url: http://a/cancel\n  key: ${UP}\n  headers: {x-team: blue}\n  map: {token: text, done: completed}\n  idle_ms: 1000\n  connect_ms: 20\n  history: {last: 7}\n",
    );
    assert_eq!(full.types["token"], InnerType::Text);
    assert_eq!(full.types["done"], InnerType::Completed);
    assert_eq!(full.cancel_url.as_deref(), Some("http://a/cancel"));
    assert_eq!(full.key, ApiKeySource::Variables(vec!["UP".into()]));
    assert_eq!(full.headers, [("x-team".to_owned(), "blue".to_owned())]);
    assert_eq!(
        (full.idle_ms, full.connect_ms, full.history),
        (Some(1_000), Some(20), 7)
    );
}
