//! `turnwire backup` under load, and `turnwire restore` after a kill: the copy is sound, nothing is
//! replaced without a word, and clients of the lost life learn that their position is gone.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use turnwire_e2e::load;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::SessionId;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{self, ServerOptions};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient, WatchFrame};

/// Runs the command: whether it succeeded, and what it printed.
fn turnwire(args: &[&str]) -> (bool, String) {
    let output = Command::new(server::binary()).args(args).output();
    let output = output.expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Submits turns until the server is gone.
async fn keep_busy(api: ApiClient, session: SessionId) {
    while let Ok(answer) = api.try_submit(session, "hi").await {
        if answer.status != 202 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_under_load_is_restored_with_a_new_epoch() {
    let script = ModelScript::new().on("", [ScriptStep::text("hello")]);
    let mut fixture = ServerFixture::new(ServerOptions::script(script)).await;
    let (api, home) = (fixture.api.clone(), fixture.server.home());
    fixture.turn("before").await;
    std::fs::write(home.join("tokens.yaml"), "a list of keys\n").expect("written");
    let sessions = load::sessions(&api, 4).await;
    let busy: Vec<_> = sessions
        .iter()
        .map(|&session| tokio::spawn(keep_busy(api.clone(), session)))
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let copy = fixture.server.folder().join("copy");
    let (succeeded, output) = {
        let (home, copy) = (text(&home), text(&copy));
        let run = move || turnwire(&["backup", &copy, "--home", &home, "--full", "--json"]);
        tokio::task::spawn_blocking(run).await.expect("it ran")
    };
    assert!(succeeded, "{output}");
    let manifest: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(manifest["checked"]["kind"], "full");
    assert_eq!(
        manifest["checked"]["sessions"],
        manifest["database"]["sessions"]
    );
    let names = manifest["files"].as_array().expect("files").iter();
    let names: Vec<_> = names.map(|file| file["name"].as_str()).collect();
    assert!(names.contains(&Some("tokens.yaml")), "{manifest:#}");
    let (succeeded, output) = turnwire(&["backup", &text(&copy), "--home", &text(&home)]);
    assert!(!succeeded && output.contains("exists"), "{output}");

    // What comes after the copy is lost. A client has seen it.
    let events = fixture.turn("after").await;
    let seen = events.last().expect("an end").id;
    let (succeeded, output) = turnwire(&["restore", &text(&copy), "--home", &text(&home)]);
    assert!(!succeeded && output.contains("--force"), "{output}");
    let force = ["restore", &text(&copy), "--home", &text(&home), "--force"];
    let (succeeded, output) = turnwire(&force);
    assert!(!succeeded && output.contains("in use"), "{output}");
    fixture.server.kill().await;
    for user in busy {
        user.await.expect("a user");
    }

    // A changed backup is not restored, and changes nothing.
    let tokens = copy.join("tokens.yaml");
    std::fs::write(&tokens, "another list\n").expect("written");
    let (succeeded, output) = turnwire(&force);
    assert!(
        !succeeded && output.contains("is not the file that was backed up"),
        "{output}"
    );
    std::fs::write(&tokens, "a list of keys\n").expect("written");
    std::fs::remove_file(home.join("tokens.yaml")).expect("removed");
    let (succeeded, output) = turnwire(&force);
    assert!(succeeded, "{output}");
    assert!(output.contains("begins a new epoch"), "{output}");
    assert!(output.contains("restored too: tokens.yaml"), "{output}");
    assert!(home.join("tokens.yaml").exists());
    fixture.server.run().await.expect("a start");
    assert!(
        !fixture.server.stderr().contains("ERROR"),
        "{}",
        fixture.server.stderr()
    );

    // The old position is gone, and a snapshot goes on from there.
    let mut client = WatchClient::connect(&fixture.api, "back", fixture.session)
        .await
        .expect("a connection");
    let ask = SubscribeOptions::since(seen);
    client.subscribe(&ask).await.expect("sent");
    let refused = loop {
        if let WatchFrame::Frame(frame) = client.next().await.expect("a frame") {
            break frame;
        }
    };
    assert_eq!(refused["type"], "subscribe_error", "{refused}");
    assert_eq!(refused["code"], "cursor_expired", "{refused}");
    let ask = SubscribeOptions::snapshot();
    client.subscribed(&ask).await.expect("a snapshot");
    let events = fixture.turn("again").await;
    let last = events.last().expect("an end").id;
    assert!(last.epoch > seen.epoch, "{last} after {seen}");
    for session in sessions.iter().chain([&fixture.session]) {
        load::wait_until_idle(&fixture.api, *session).await;
        let (succeeded, output) =
            turnwire(&["verify", &session.to_string(), "--data", &text(&home)]);
        assert!(succeeded, "{output}");
    }
}
