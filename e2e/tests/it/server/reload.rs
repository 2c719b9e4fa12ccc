//! SIGHUP: the settings are read again, what is wrong is reported and not applied, and the server
//! goes on. The pack's reload is tested with the engine.

use std::time::Duration;

use rustix::process::Signal;
use turnwire_e2e::chat::until;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::script::ScriptStep;

/// The value of `turnwire_reloads_total` for the settings.
async fn reloads(fixture: &ServerFixture, status: &str) -> u32 {
    let metrics = fixture.api.get("/metrics").await.expect("an answer").body;
    let name = format!("turnwire_reloads_total{{part=\"settings\",status=\"{status}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |value| value.parse().expect("a number"))
}

#[tokio::test]
async fn hangup_applies_the_log_filter_and_refuses_wrong_settings() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let file = fixture.server.folder().join("turnwire.test.yaml");
    let settings = std::fs::read_to_string(&file).expect("settings");
    let hang_up = || fixture.server.signal(Signal::HUP);
    hang_up();
    until("an unchanged reload", || async {
        reloads(&fixture, "unchanged").await == 1
    })
    .await;

    let debugged = format!(
        "{settings}\nlog:\n  filter: info,turnwire_serve=debug\nturn:\n  timeout_ms: 500000\n"
    );
    std::fs::write(&file, &debugged).expect("written");
    hang_up();
    until("an applied reload", || async {
        reloads(&fixture, "applied").await == 1
    })
    .await;
    let log = fixture.server.stderr();
    assert!(log.contains("turn.timeout_ms"), "it needs a restart: {log}");
    hang_up();
    until("lines of level DEBUG", || async {
        let log = fixture.server.stderr();
        log.lines()
            .any(|line| line.contains("DEBUG") && line.contains("turnwire_serve"))
    })
    .await;

    for (wrong, part) in [
        (format!("{settings}\nlog:\n  colour: red\n"), "colour"),
        (
            format!("{settings}\nlog:\n  filter: 'info,=='\n"),
            "log.filter",
        ),
    ] {
        let before = reloads(&fixture, "refused").await;
        std::fs::write(&file, wrong).expect("written");
        hang_up();
        until("a refused reload", || async {
            reloads(&fixture, "refused").await == before + 1
        })
        .await;
        let log = fixture.server.stderr();
        let line = log
            .lines()
            .rfind(|line| line.contains("the reload was refused"));
        assert!(line.is_some_and(|line| line.contains(part)), "{log}");
    }
    // What was in force stays.
    let seen = fixture.server.stderr().len();
    std::fs::write(&file, &debugged).expect("written");
    hang_up();
    until("the filter of before", || async {
        let log = fixture.server.stderr();
        log.get(seen..).is_some_and(|log| log.contains("DEBUG"))
    })
    .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    fixture.turn("still there?").await;
    fixture.check_history().await;
}
