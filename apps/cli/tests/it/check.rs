//! `turnwire check` as an author of packs runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use turnwire_testkit::provider::{FakeProvider, ProviderAnswer};

use crate::server::BINARY;

/// Writes the demo pack into `dir`.
fn demo_pack(dir: &Path) {
    let mut init = Command::new(BINARY);
    let done = init.arg("init").arg(dir).arg("--demo").output();
    assert!(done.expect("it runs").status.success());
}

/// Replaces a text of a file.
fn swap(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("a file");
    assert!(text.contains(from), "no {from:?} in {text}");
    fs::write(file, text.replacen(from, to, 1)).expect("written");
}

fn check(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    let run = command.current_dir(dir).arg("check").args(args).output();
    run.expect("it runs")
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

// S1-074, S1-075
#[test]
fn check_against_an_earlier_pack_refuses_a_dropped_status_id() {
    let dir = tempfile::tempdir().expect("a folder");
    for name in ["old", "new"] {
        demo_pack(&dir.path().join(name));
    }
    let same = check(dir.path(), &["new", "--against", "old"]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));
    let new = dir.path().join("new");
    // The id is renamed everywhere: the pack is good by itself.
    let files = [
        "verticals/support/status_events.yaml",
        "verticals/support/agent.yaml",
        "overrides.yaml",
    ];
    for file in files {
        let file = new.join(file);
        let written = fs::read_to_string(&file).expect("a file");
        let renamed = written.replace("contacting_support", "asking_support");
        fs::write(&file, renamed.replace("status.asking", "status.contacting")).expect("written");
    }
    let alone = check(dir.path(), &["new"]);
    assert_eq!(alone.status.code(), Some(0), "{}", text(&alone.stdout));
    let against = check(dir.path(), &["new", "--against", "old"]);
    assert_eq!(against.status.code(), Some(1));
    let expected = "new/verticals/support/status_events.yaml:1:1: error: the status id \
                    `contacting_support` was active in old and is gone\n    write: the entry of \
                    `contacting_support` with `lifecycle: deprecated` and a `note`; a new name is an \
                    entry of its own\n";
    let out = text(&against.stdout);
    assert!(out.contains(expected), "{out}");
    let missing = check(dir.path(), &["new", "--against", "nowhere"]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing.stderr));
}

#[test]
fn check_reports_a_missing_program_beside_an_unknown_field() {
    let dir = tempfile::tempdir().expect("a folder");
    let pack = dir.path().join("pack");
    demo_pack(&pack);
    let tools = "tools:\n  - name: run\n    connector: process\n    colour: red\n    description: Runs.\n    \
                 command: [no-such-program]\n    input_schema: {type: object}\n";
    swap(&pack.join("tools.yaml"), "tools:\n", tools);
    swap(&pack.join("orchestrator.yaml"), "tools: [", "tools: [run, ");
    swap(
        &pack.join("pack.yaml"),
        "flags:\n",
        "flags:\n  ai_assistant_wire_v4: true\n",
    );
    let done = check(dir.path(), &["pack"]);
    assert_eq!(done.status.code(), Some(1));
    let out = text(&done.stdout);
    for part in [
        "unknown field `colour`",
        "the tool `run` runs `no-such-program`, and there is no such program",
        "did you mean `ai_assistant_wire_v04`?",
        "3 errors",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
}

/// The demo pack with models of `provider`: one that it has, and one that it has not.
fn pack_of(dir: &Path, provider: &FakeProvider, models: &str) {
    demo_pack(dir);
    swap(
        &dir.join("pack.yaml"),
        "  default: \"scripted:market\"\n",
        models,
    );
    let url = format!("{}/v1", provider.base_url());
    let providers = format!(
        "providers:\n  local: {{dialect: openai_chat, base_url: \"{url}\", key: \"${{LOCAL_KEY}}\"}}\n"
    );
    fs::write(dir.join("providers.yaml"), providers).expect("written");
}

fn check_online(dir: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    let command = command.current_dir(dir).args(["check", "pack", "--online"]);
    let run = command.args(more).env("LOCAL_KEY", KEY).output();
    run.expect("it runs")
}

const KEY: &str = "local-key-12345678";

#[tokio::test(flavor = "multi_thread")]
async fn check_online_tries_each_model_once_and_quotes_its_provider() {
    let dir = tempfile::tempdir().expect("a folder");
    let provider = FakeProvider::start().await;
    let models = "  default: \"local:small\"\n  other: \"local:small\"\n";
    pack_of(&dir.path().join("pack"), &provider, models);
    provider.push(ProviderAnswer::text(["ok"]));
    let done = check_online(dir.path(), &[]);
    let out = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{out} {}", text(&done.stderr));
    assert!(out.contains("✓ local:small answered\n"), "{out}");
    assert_eq!(provider.call(0).await.body["model"], "small");
    assert_eq!(provider.calls().len(), 1, "no retry, no second use");

    let refusal = r#"{"error": {"message": "The model `gpt-9` does not exist", "type": "invalid_request_error", "code": "model_not_found"}}"#;
    provider.push(ProviderAnswer::page(404, refusal).header("content-type", "application/json"));
    let pack = dir.path().join("pack/pack.yaml");
    swap(&pack, "\"local:small\"", "\"local:gpt-9\"");
    swap(&pack, "  other: \"local:small\"\n", "");
    let done = check_online(dir.path(), &[]);
    let out = text(&done.stdout);
    assert_eq!(done.status.code(), Some(1), "{out}");
    for part in [
        "a model cannot be used: local:gpt-9 at http://",
        "HTTP 404",
        "model_not_found",
        "The model `gpt-9` does not exist",
        "1 error",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    assert!(!out.contains(KEY), "{out}");
    assert_eq!(provider.calls().len(), 2, "no retry");

    provider.push(ProviderAnswer::page(401, "{}"));
    let done = check_online(dir.path(), &["--json"]);
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(report["ok"], false);
    let expected = serde_json::json!([{"model": "local:gpt-9", "ok": false}]);
    assert_eq!(report["online"], expected);

    // Nothing is called without the flag, and nothing while the pack has errors.
    let mut plain = Command::new(BINARY);
    let plain = plain.args(["check", "pack"]).current_dir(dir.path());
    let plain = plain.env("LOCAL_KEY", KEY).output().expect("it runs");
    assert_eq!(plain.status.code(), Some(0));
    swap(&pack, "name: market", "nam: market");
    let done = check_online(dir.path(), &[]);
    let out = text(&done.stdout);
    assert!(
        out.contains("not tried online: the pack has errors"),
        "{out}"
    );
    assert_eq!(provider.calls().len(), 3, "{out}");
}
