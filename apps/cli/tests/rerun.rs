//! A conversation with the demo pack, recorded from its data folder, played again without its own
//! scripts, and compared: green as it was, red where a word is changed.

mod server;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use server::{BINARY, PATIENCE, Server};
use tokio::time::timeout;
use turnwire_client::{Client, Item, Start, Watch};
use turnwire_event::{Body, Epoch, Event, Position, Seq, SessionId};
use turnwire_wire::rest::session::Create;
use turnwire_wire::rest::turn::Submit;

fn market() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/market")
}

/// The next event of the session that `wanted` wants.
async fn until(watch: &mut Watch, wanted: impl Fn(&Event) -> bool) -> Event {
    let search = async {
        loop {
            let item = watch.next().await.expect("a stream").expect("a session");
            if let Item::Event(received) = item
                && let Some(event) = received.read().filter(|event| wanted(event))
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

fn after(session: SessionId, client: &Client) -> Watch {
    let start = Start::After(Position::persisted(Epoch::FIRST, Seq(0)));
    client.watch(session, json!("preset:full"), start)
}

/// Two sub-agents at once, a service that fails, the same words twice, another language, and a
/// turn that is stopped while a service takes its time.
async fn converse(client: &Client) -> SessionId {
    let created = client.create(&Create::default()).await.expect("a session");
    let session = created.session_id;
    let mut watch = after(session, client);
    let both = "Find offers for oat milk and tell me my points";
    for (locale, words) in [
        ("en", both),
        ("en", "offers outage"),
        ("de", "Gibt es Angebote für Hafermilch?"),
        ("en", both),
    ] {
        let submit = Submit {
            locale: Some(locale.into()),
            ..Submit::text(words)
        };
        client.submit(session, &submit).await.expect("accepted");
        until(&mut watch, ends).await;
    }
    let slow = Submit::text("slow offers for oat milk");
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

fn scripted(dir: &Path, script: &Path) -> Server {
    let market = market();
    let more = [
        OsStr::new("--pack"),
        market.as_os_str(),
        OsStr::new("--script"),
        script.as_os_str(),
    ];
    Server::serve(dir, "127.0.0.1:0", &more)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_conversation_is_green_again_and_a_changed_word_is_red_in_its_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = |name: &str| dir.path().join(name);
    let demo = Server::serve(&place("demo"), "127.0.0.1:0", &[]);
    let session = converse(&demo.client()).await.to_string();
    let (home, out) = (place("demo"), place("case"));
    let record = [
        OsStr::new("record"),
        OsStr::new(&session),
        OsStr::new("--data"),
        home.as_os_str(),
        OsStr::new("--out"),
        out.as_os_str(),
    ];
    let output = turnwire(&record);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    assert!(text(&output.stdout).starts_with("5 turns, in "));
    let again = turnwire(&record);
    assert_eq!(again.status.code(), Some(2), "nothing is written over");
    drop(demo);

    let (script, case) = (out.join("script.yaml"), out.join("case.yaml"));
    let same = scripted(&place("same"), &script);
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
    std::fs::write(&changed, words.replace("outage\"}", "storm\"}")).expect("written");
    let other = scripted(&place("other"), &changed);
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
    let other = scripted(&place("third"), &changed);
    let (code, told) = rerun(&other, &case, &[]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("✗ turn 3: Gibt es Angebote"), "{told}");
    assert!(told.contains("    text: expected "), "{told}");
    assert!(told.contains("✓ turn 1: "), "{told}");
    assert!(told.contains("1 of 5 turns not as expected"), "{told}");
}

#[test]
fn a_case_that_is_none_and_a_server_that_is_not_there_are_told() {
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
