//! Hosts over packs that use providers: keys, cassettes, rules that change.

use std::time::Duration;

use super::*;
use crate::host::reload::Reloader;

const LOCAL: &str = "providers:
  local:
    dialect: openai_chat
    base_url: http://127.0.0.1:9/v1
    key: ${LOCAL_KEY}
";

const PRICES: &str = "prices: {\"*\": {input: 1, output: 1}}\n";

/// The skeleton with files over its own.
fn small(more: &[(&str, &str)]) -> PackFiles {
    let skeleton = PackFiles::skeleton("small");
    let own = skeleton
        .iter()
        .filter(|(path, _)| more.iter().all(|(other, _)| other != path));
    let all = own.chain(more.iter().copied());
    PackFiles::from_pairs(all.map(|(path, text)| (path.to_owned(), text.to_owned())))
}

/// The manifest of the skeleton with another model.
fn manifest(model: &str) -> String {
    let skeleton = PackFiles::skeleton("small");
    let text = skeleton.get("pack.yaml").expect("a manifest");
    assert!(text.contains("scripted:small"), "{text}");
    text.replace("scripted:small", model)
}

fn told(files: &PackFiles, variables: &ServerVariables) -> Vec<String> {
    let report = judge(files, variables);
    report.findings.iter().map(PackFinding::to_string).collect()
}

// S2-001
#[test]
fn used_provider_needs_its_key() {
    let pack = manifest("local:m");
    let files = small(&[
        ("pack.yaml", &pack),
        ("providers.yaml", LOCAL),
        ("prices.yaml", PRICES),
    ]);
    let none = ServerVariables::default();
    let missing = "providers.yaml:5:10: error: `local`: the key should be in the variable `LOCAL_KEY`, which is not set; write: LOCAL_KEY into the environment before the start";
    assert_eq!(told(&files, &none), [missing]);
    let set = none.clone().or("LOCAL_KEY", "sk-1");
    assert_eq!(told(&files, &set), [""; 0]);
    let odd = none.or("LOCAL_KEY", "sk 1");
    let told = told(&files, &odd);
    assert!(
        told[0].contains("characters other than visible ASCII"),
        "{told:?}"
    );
    assert!(!told[0].contains("sk 1"), "{told:?}");
}

// S2-001
#[test]
fn built_in_provider_names_its_variable_where_used() {
    let pack = manifest("gemini:flash");
    let files = small(&[("pack.yaml", &pack), ("prices.yaml", PRICES)]);
    let told_of = told(&files, &ServerVariables::default());
    let end = "error: `gemini`: the key should be in the variable `GEMINI_API_KEY`, which is not set; write: GEMINI_API_KEY or GOOGLE_API_KEY into the environment before the start";
    assert_eq!(told_of.len(), 1, "{told_of:?}");
    assert!(
        told_of[0].starts_with("pack.yaml:") && told_of[0].ends_with(end),
        "{told_of:?}"
    );
    let other = ServerVariables::default().or("GOOGLE_API_KEY", "k");
    assert_eq!(told(&files, &other), [""; 0]);
    let files = small(&[("pack.yaml", &manifest("openia:gpt"))]);
    let told_of = told(&files, &ServerVariables::default());
    assert_eq!(told_of.len(), 1, "{told_of:?}");
    assert!(told_of[0].ends_with("error: unknown provider `openia`, did you mean `openai`?"));
}

#[tokio::test]
async fn missing_key_file_is_reported_and_changed_one_reread() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    let providers = LOCAL.replace("key: ${LOCAL_KEY}", &format!("key_file: {}", key.display()));
    let pack = manifest("local:m");
    let files = small(&[
        ("pack.yaml", &pack),
        ("providers.yaml", &providers),
        ("prices.yaml", PRICES),
    ]);
    let told_of = told(&files, &ServerVariables::default());
    assert_eq!(told_of.len(), 1, "{told_of:?}");
    assert!(
        told_of[0]
            .starts_with("providers.yaml:5:15: error: `local`: the key should be in the file ")
    );

    std::fs::write(&key, "sk-1\n").expect("a key");
    let dir = folder.path().join("pack");
    write(&files, &dir);
    let host = open(&dir).await.unwrap_or_else(|why| panic!("{why}"));
    assert!(
        !host.reload().await.expect("readable"),
        "nothing has changed"
    );
    std::fs::write(&key, "sk-22\n").expect("a key");
    assert!(
        host.reload().await.expect("readable"),
        "the key has changed"
    );
    std::fs::remove_file(&key).expect("removed");
    assert!(
        matches!(host.reload().await, Err(PackLoadError::Wrong(_))),
        "the key is gone"
    );
}

// S3-104
#[tokio::test]
async fn changed_routing_is_announced_broken_one_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&PackFiles::skeleton("small"), folder.path());
    let host = open(folder.path())
        .await
        .unwrap_or_else(|why| panic!("{why}"));
    let mut policy = host.policy();
    assert_eq!(*policy.borrow_and_update(), "builtin-1");

    let file = folder.path().join("routing.yaml");
    let rules = |version: &str, model: &str| {
        let text = format!("version: \"{version}\"\ndefault: {{use: {model}}}\n");
        std::fs::write(&file, text).expect("a file");
    };
    rules("v1", "default");
    assert!(host.reload().await.expect("a good pack"));
    assert!(policy.has_changed().expect("a host"));
    assert_eq!(*policy.borrow_and_update(), "v1");

    rules("v2", "teleport:x");
    let Err(PackLoadError::Wrong(findings)) = host.reload().await else {
        panic!("a broken file was applied");
    };
    let told: Vec<String> = findings.iter().map(PackFinding::to_string).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0]
            .starts_with("routing.yaml:2:16: error: unknown provider `teleport`; write: one of ")
    );
    assert!(!policy.has_changed().expect("a host"));
    assert_eq!(host.loaded.load().routing.version(), "v1");

    // Another model under the same name: turns use it, and there is nothing to tell.
    rules("v1", "scripted:other");
    assert!(host.reload().await.expect("a good pack"));
    assert!(!policy.has_changed().expect("a host"));
    let loaded = host.loaded.load_full();
    let default = loaded
        .checked
        .pack
        .routing
        .as_ref()
        .and_then(|routing| routing.default.as_ref());
    assert_eq!(
        default.map(|default| default.model.as_str()),
        Some("scripted:other")
    );

    std::fs::remove_file(&file).expect("removed");
    assert!(host.reload().await.expect("a good pack"));
    assert_eq!(*policy.borrow_and_update(), "builtin-1");
}

#[test]
fn unplayable_cassette_is_reported_with_its_line() {
    let pack = manifest("cassette:talk");
    let tape = "{\"type\":\"cassette\",\"version\":1}\nnonsense\n";
    let files = small(&[("pack.yaml", &pack), ("cassettes/talk.jsonl", tape)]);
    let told_of = told(&files, &ServerVariables::default());
    assert_eq!(told_of.len(), 1, "{told_of:?}");
    assert!(
        told_of[0].starts_with("cassettes/talk.jsonl:2:1: error: "),
        "{told_of:?}"
    );
    let foreign = "{\"type\":\"cassette\",\"version\":1}\n\
        {\"type\":\"call\",\"provider\":\"p\",\"dialect\":\"morse\",\"model\":\"m\",\"agent\":\"a\",\"call\":1,\
        \"words_sha256\":\"\",\"body_sha256\":\"\",\"status\":200}\n\
        {\"type\":\"end\",\"ms\":1,\"how\":\"end\"}\n";
    let files = small(&[("pack.yaml", &pack), ("cassettes/talk.jsonl", foreign)]);
    assert_eq!(
        told(&files, &ServerVariables::default()),
        [
            "cassettes/talk.jsonl:2:1: error: unknown dialect `morse`; write: one of `anthropic`, `openai_chat`, `openai_responses`, `gemini`"
        ]
    );
    let good = small(&[
        ("pack.yaml", &pack),
        (
            "cassettes/talk.jsonl",
            "{\"type\":\"cassette\",\"version\":1}\n",
        ),
    ]);
    assert_eq!(told(&good, &ServerVariables::default()), [""; 0]);
}

#[test]
fn variable_values_are_absent_from_debug_text() {
    let variables = ServerVariables::default().or("LOCAL_KEY", "sk-marker");
    let text = format!("{variables:?}");
    assert!(
        text.contains("LOCAL_KEY") && !text.contains("sk-marker"),
        "{text}"
    );
}

#[test]
fn missing_key_is_reported_with_other_findings() {
    let pack = manifest("local:m");
    let files = small(&[
        ("pack.yaml", &pack),
        ("providers.yaml", LOCAL),
        ("prices.yaml", PRICES),
        ("cassettes/talk.jsonl", "nonsense\n"),
        ("scripts/zz.yaml", "- steps:\n  - {texd: hi}\n"),
    ]);
    let told = told(&files, &ServerVariables::default());
    let places: Vec<&str> = told
        .iter()
        .filter_map(|one| one.split(':').next())
        .collect();
    let all = ["cassettes/talk.jsonl", "providers.yaml", "scripts/zz.yaml"];
    assert_eq!(places, all, "{told:?}");
}

#[tokio::test]
async fn given_script_replaces_every_provider_without_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let pack = manifest("local:m");
    let routing = "version: \"v1\"\nrules:\n  - {name: far, when: {locale: de}, use: \"gemini:flash\", \
                   fallback: [\"cassette:talk\"]}\n";
    let tape = "{\"type\":\"cassette\",\"version\":1}\n";
    let files = small(&[
        ("pack.yaml", &pack),
        ("providers.yaml", LOCAL),
        ("prices.yaml", PRICES),
        ("routing.yaml", routing),
        ("cassettes/talk.jsonl", tape),
    ]);
    write(&files, folder.path());
    assert!(
        open(folder.path()).await.is_err(),
        "its own models need a key"
    );
    let script = Some(ModelScript::builtin());
    let dir = PackSource::Folder(folder.path().to_owned());
    let host = PackHost::open(dir, ServerVariables::default(), script, resources()).await;
    let host = host.unwrap_or_else(|why| panic!("{why}"));
    assert!(
        !host.reload().await.expect("readable"),
        "nothing has changed"
    );
    let set = models::spoken_for(&host.pack(), &ScriptedProvider::new(ModelScript::builtin()));
    let names: Vec<&str> = set.names().collect();
    assert_eq!(names, ["cassette", "gemini", "local", "scripted"]);
}

/// Waits until something is so.
async fn until(so: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it did not happen in 10 s");
}

/// A skeleton at work, and the same with a provider whose key should be in `key`.
async fn keyed(dir: &Path, key: &Path) -> (Arc<PackHost>, PackFiles) {
    write(&PackFiles::skeleton("small"), dir);
    let host = open(dir).await.unwrap_or_else(|why| panic!("{why}"));
    let providers = LOCAL.replace("key: ${LOCAL_KEY}", &format!("key_file: {}", key.display()));
    let pack = manifest("local:m");
    let files = small(&[
        ("pack.yaml", &pack),
        ("providers.yaml", &providers),
        ("prices.yaml", PRICES),
    ]);
    (host, files)
}

#[tokio::test]
async fn refused_change_is_retaken_when_key_file_appears() {
    let folder = tempfile::tempdir().expect("a folder");
    let (dir, key) = (folder.path().join("pack"), folder.path().join("key"));
    let (host, files) = keyed(&dir, &key).await;
    let before = host.loaded.load_full();
    write(&files, &dir);
    let every = Some(Duration::from_millis(5));
    let requests = Reloader::default().subscribe();
    let watching = tokio::spawn(host.clone().watch(every, requests));
    until(|| !host.wanted.lock().is_empty()).await;
    assert!(Arc::ptr_eq(&before, &host.loaded.load()));
    std::fs::write(&key, "sk-1\n").expect("a key");
    until(|| !Arc::ptr_eq(&before, &host.loaded.load())).await;
    // One that is put in the place of the other, as long and as old.
    let first = host.loaded.load_full();
    let about = std::fs::metadata(&key).expect("a file");
    let other = folder.path().join("other");
    std::fs::write(&other, "sk-2\n").expect("a key");
    let file = std::fs::File::options().write(true).open(&other);
    let age = about.modified().expect("an age");
    file.expect("a file").set_modified(age).expect("set");
    std::fs::rename(&other, &key).expect("renamed");
    until(|| !Arc::ptr_eq(&first, &host.loaded.load())).await;
    watching.abort();
}

#[tokio::test]
async fn requested_reload_rereads_an_unchanged_pack() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&PackFiles::skeleton("small"), folder.path());
    let host = open(folder.path())
        .await
        .unwrap_or_else(|why| panic!("{why}"));
    let before = host.loaded.load_full();
    let reloader = Reloader::default();
    let watching = tokio::spawn(host.clone().watch(None, reloader.subscribe()));
    reloader.reload().await;
    until(|| !Arc::ptr_eq(&before, &host.loaded.load())).await;
    watching.abort();
}
