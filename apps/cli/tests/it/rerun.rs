//! A conversation with the demo pack, recorded from its data folder, played again without its own
//! scripts, and compared: green as it was, red where a word is changed. So is one that a model of
//! somebody else answered, without that model and without its key.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::server::{BINARY, PATIENCE, Server};
use crate::upstream::Upstream;
use serde_json::{Value, json};
use tokio::time::timeout;
use turnwire_client::{Client, SessionWatch, WatchItem, WatchStart};
use turnwire_event::{Body, Epoch, Event, Position, Seq, SessionId};
use turnwire_pack::PackFiles;
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::TurnSubmit;

fn market() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/market")
}

/// The next event of the session that `wanted` wants.
async fn until(watch: &mut SessionWatch, wanted: impl Fn(&Event) -> bool) -> Event {
    let search = async {
        loop {
            let item = watch.next().await.expect("a stream").expect("a session");
            if let WatchItem::Event(received) = item
                && let Some(event) = received.parse().filter(|event| wanted(event))
            {
                return event;
            }
        }
    };
    timeout(PATIENCE, search).await.expect("in time")
}

fn ends(event: &Event) -> bool {
    matches!(event.body, Body::TurnCompleted(_) | Body::TurnCancelled(_))
}

fn after(session: SessionId, client: &Client) -> SessionWatch {
    let start = WatchStart::After(Position::persisted(Epoch::FIRST, Seq(0)));
    client.watch(session, json!("preset:full"), start)
}

/// Two sub-agents at once, a service that fails, the same words twice, another language, and a
/// turn that is stopped while a service takes its time.
async fn converse(client: &Client) -> SessionId {
    let created = client
        .create_session(&SessionCreate::default())
        .await
        .expect("a session");
    let session = created.session_id;
    let mut watch = after(session, client);
    let both = "Find offers for oat milk and tell me my points";
    for (locale, words) in [
        ("en", both),
        ("en", "offers outage"),
        ("de", "Gibt es Angebote für Hafermilch?"),
        ("en", both),
    ] {
        let submit = TurnSubmit {
            locale: Some(locale.into()),
            ..TurnSubmit::text(words)
        };
        client.submit(session, &submit).await.expect("accepted");
        until(&mut watch, ends).await;
    }
    let slow = TurnSubmit::text("slow offers for oat milk");
    let accepted = client.submit(session, &slow).await.expect("accepted");
    let searching = |event: &Event| matches!(&event.body, Body::ToolCalled(tool) if tool.tool_name == "search_offers");
    until(&mut watch, searching).await;
    let cancelled = client.cancel(accepted.turn_id, None).await;
    cancelled.expect("it runs");
    let end = until(&mut watch, ends).await;
    assert!(matches!(end.body, Body::TurnCancelled(_)), "{end:?}");
    session
}

fn turnwire(words: &[&OsStr]) -> Output {
    let ran = Command::new(BINARY).args(words).output();
    ran.expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn rerun(server: &Server, case: &Path, more: &[&str]) -> (Option<i32>, String) {
    let url = server.url();
    let mut words = vec![
        OsStr::new("rerun"),
        case.as_os_str(),
        OsStr::new("--server"),
        OsStr::new(&url),
    ];
    words.extend(more.iter().map(OsStr::new));
    let output = turnwire(&words);
    let told = text(&output.stdout);
    (output.status.code(), told + &text(&output.stderr))
}

fn scripted(dir: &Path, pack: &Path, script: &Path) -> Server {
    let more = [
        OsStr::new("--pack"),
        pack.as_os_str(),
        OsStr::new("--script"),
        script.as_os_str(),
    ];
    Server::serve(dir, "127.0.0.1:0", &more)
}

fn record(session: &str, home: &Path, out: &Path) -> Output {
    let words = ["record", session, "--data"].map(OsStr::new);
    let places = [home.as_os_str(), OsStr::new("--out"), out.as_os_str()];
    turnwire(&[&words[..], &places].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn rerun_passes_and_a_changed_word_fails_its_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = |name: &str| dir.path().join(name);
    let demo = Server::serve(&place("demo"), "127.0.0.1:0", &[]);
    let session = converse(&demo.client()).await.to_string();
    let (home, out) = (place("demo"), place("case"));
    let output = record(&session, &home, &out);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    assert!(text(&output.stdout).starts_with("5 turns, in "));
    let again = record(&session, &home, &out);
    assert_eq!(again.status.code(), Some(2), "nothing is written over");
    drop(demo);

    let (script, case) = (out.join("script.yaml"), out.join("case.yaml"));
    let same = scripted(&place("same"), &market(), &script);
    let (code, told) = rerun(&same, &case, &[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("5 of 5 turns as expected"), "{told}");
    // A second time in the same server: nothing of the first is left over.
    let (code, told) = rerun(&same, &case, &["--json"]);
    assert_eq!(code, Some(0), "{told}");
    drop(same);

    let words = std::fs::read_to_string(&script).expect("a script");
    assert!(words.contains("\" Hafermilch\""), "{words}");
    let changed = place("changed.yaml");
    std::fs::write(
        &changed,
        words.replace("query: offers outage", "query: offers storm"),
    )
    .expect("written");
    let other = scripted(&place("other"), &market(), &changed);
    let (code, told) = rerun(&other, &case, &["--json"]);
    assert_eq!(code, Some(1), "{told}");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let ok: Vec<_> = told["turns"]
        .as_array()
        .expect("turns")
        .iter()
        .map(|turn| &turn["ok"])
        .collect();
    assert_eq!(ok, [true, false, true, true, true], "{told:#}");
    drop(other);

    let soya = words.replace("\" Hafermilch\"", "\" Sojamilch\"");
    std::fs::write(&changed, soya).expect("written");
    let other = scripted(&place("third"), &market(), &changed);
    let (code, told) = rerun(&other, &case, &[]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("✗ turn 3: Gibt es Angebote"), "{told}");
    assert!(told.contains("    text: expected "), "{told}");
    assert!(told.contains("✓ turn 1: "), "{told}");
    assert!(told.contains("1 of 5 turns not as expected"), "{told}");
}

/// A pack whose only model is asked at `port`, with the key that is in `key`.
fn asking(dir: &Path, port: u16, key: &Path) {
    let providers = format!(
        "providers:\n  local:\n    dialect: openai_chat\n    base_url: http://127.0.0.1:{port}/v1\n    \
         key_file: {}\n",
        key.display()
    );
    let prices = "prices: {\"local:*\": {input: 2.0, output: 100.0}}\n";
    let skeleton = PackFiles::skeleton("small");
    let own = skeleton.iter().map(|(path, text)| {
        let text = match path {
            "pack.yaml" => text.replace("scripted:small", "local:m"),
            _ => text.to_owned(),
        };
        (path, text)
    });
    let more = [
        ("providers.yaml", providers),
        ("prices.yaml", prices.into()),
    ];
    for (path, text) in own.chain(more) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("written");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_provider_replies_need_no_provider() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = |name: &str| dir.path().join(name);
    let (pack, key) = (place("pack"), place("key"));
    let theirs = Upstream::open().await;
    asking(&pack, theirs.port, &key);
    std::fs::write(&key, "sk-1\n").expect("a key");
    let live = Server::serve(
        &place("live"),
        "127.0.0.1:0",
        &[OsStr::new("--pack"), pack.as_os_str()],
    );
    let client = live.client();
    let created = client
        .create_session(&SessionCreate::default())
        .await
        .expect("a session");
    let session = created.session_id;
    let submit = TurnSubmit::text("Wie geht es?");
    client.submit(session, &submit).await.expect("accepted");
    until(&mut after(session, &client), ends).await;
    let (home, out) = (place("live"), place("case"));
    let output = record(&session.to_string(), &home, &out);
    assert!(output.status.success(), "{}", text(&output.stderr));
    drop(live);

    drop(theirs);
    std::fs::remove_file(&key).expect("removed");
    let same = scripted(&place("same"), &pack, &out.join("script.yaml"));
    let (code, told) = rerun(&same, &out.join("case.yaml"), &[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("1 of 1 turns as expected"), "{told}");
    let case = std::fs::read_to_string(out.join("case.yaml")).expect("a case");
    assert!(case.contains("Guten Tag."), "{case}");
    // Whoever reads the log sees the model that was asked for.
    let client = same.client();
    let created = client
        .create_session(&SessionCreate::default())
        .await
        .expect("a session");
    let again = created.session_id;
    client.submit(again, &submit).await.expect("accepted");
    let called = |event: &Event| matches!(&event.body, Body::LlmCallStarted(_));
    let call = until(&mut after(again, &client), called).await;
    let Body::LlmCallStarted(call) = call.body else {
        panic!("a call");
    };
    assert_eq!(call.model, "local:m");
}

#[test]
fn invalid_case_and_missing_server_are_reported() {
    let dir = tempfile::tempdir().expect("a folder");
    let case = dir.path().join("case.yaml");
    let rerun = || {
        let words = ["rerun", "--server", "http://127.0.0.1:9"].map(OsStr::new);
        turnwire(&[&words[..], &[case.as_os_str()]].concat())
    };
    let output = rerun();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("case.yaml"));
    std::fs::write(&case, "version: 1\nname: x\nturns: [{message: hello}]\n").expect("written");
    let output = rerun();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("asking http://127.0.0.1:9"));
    let session = SessionId(turnwire_event::Ulid(7)).to_string();
    let words = ["record", &session, "--data"].map(OsStr::new);
    let output = turnwire(&[&words[..], &[dir.path().as_os_str()]].concat());
    assert_eq!(output.status.code(), Some(2));
}
