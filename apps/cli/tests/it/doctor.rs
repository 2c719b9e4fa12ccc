//! `turnwire doctor` on a folder that is well, beside a running server, and on what is wrong.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use turnwire_testkit::provider::{FakeProvider, ProviderAnswer};
use turnwire_testkit::server::free_port;

use crate::server::{BINARY, Server};

const SCRIPT: &str = "- {steps: [{text: \"an answer\"}]}\n";

/// The exit code, the report and everything that was printed.
fn doctor(home: &Path, listen: &str, more: &[&str]) -> (Option<i32>, Value, String) {
    let mut command = Command::new(BINARY);
    let command = command.args(["doctor", "--json", "--listen", listen, "--home"]);
    let run = command.arg(home).args(more).env("LOCAL_KEY", KEY);
    let done = run.output().expect("it runs");
    let text = String::from_utf8_lossy(&[done.stdout.clone(), done.stderr].concat()).into_owned();
    let report = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{text}"));
    (done.status.code(), report, text)
}

/// The level and the finding of a check that contains `part`.
fn finding<'a>(report: &'a Value, check: &str, part: &str) -> (&'a str, &'a str) {
    let checks = report["checks"].as_array().expect("checks");
    let of = |it: &&Value| {
        let finding = it["finding"].as_str().unwrap_or_default();
        it["check"] == check && finding.contains(part)
    };
    let found = checks.iter().find(of);
    let found = found.unwrap_or_else(|| panic!("no {check} with {part:?} in {report:#}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default();
    (text("level"), text("finding"))
}

const KEY: &str = "local-key-12345678";

#[test]
fn folder_beside_its_server_is_sound() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).expect("private");
    let server = Server::start(dir.path(), SCRIPT);
    let (code, report, text) = doctor(dir.path(), &server.address, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(report["ok"], true);
    assert_eq!(finding(&report, "port", "is ready").0, "ok");
    assert_eq!(finding(&report, "folder", "is private").0, "ok");
    assert_eq!(finding(&report, "version", "has its schema").0, "ok");
    assert_eq!(finding(&report, "clock", "it says").0, "ok");
    let mut plain = Command::new(BINARY);
    let plain = plain.args(["doctor", "--listen", &server.address, "--home"]);
    let plain = plain.arg(dir.path()).output().expect("it runs");
    let lines = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(
        lines
            .lines()
            .any(|line| line.starts_with("ok       port: ")),
        "{lines}"
    );
}

#[test]
fn wrong_settings_folders_ports_and_packs_are_problems() {
    let dir = tempfile::tempdir().expect("a folder");
    let port = free_port().to_string();
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("written");
    let empty = file.display().to_string();
    let (code, report, _) = doctor(&file, &port, &["--config", &empty]);
    assert_eq!(
        (code, finding(&report, "folder", "not a folder").0),
        (Some(1), "problem")
    );

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    std::thread::spawn(move || while taken.accept().is_ok() {});
    let (code, report, _) = doctor(&dir.path().join("new"), &address, &[]);
    assert_eq!(
        (code, finding(&report, "port", "no turnwire").0),
        (Some(1), "problem")
    );
    assert_eq!(finding(&report, "folder", "a start creates it").0, "ok");
    assert!(!dir.path().join("new").exists(), "nothing is changed");

    let config = dir.path().join("odd.yaml");
    std::fs::write(&config, "store: {durability: relaxed, reserve_bytes: 0}\n").expect("written");
    let config = config.display().to_string();
    let (code, report, _) = doctor(&dir.path().join("new"), &port, &["--config", &config]);
    assert_eq!(code, Some(0), "warnings are no problem");
    assert_eq!(finding(&report, "settings", "relaxed").0, "warning");
    assert_eq!(finding(&report, "settings", "reserve_bytes").0, "warning");
    std::fs::write(&config, "store: {colour: red}\n").expect("written");
    let (code, report, _) = doctor(&dir.path().join("new"), &port, &["--config", &config]);
    assert_eq!(
        (code, finding(&report, "settings", "colour").0),
        (Some(1), "problem")
    );

    let home = dir.path().join("home");
    std::fs::create_dir(&home).expect("a folder");
    std::fs::set_permissions(&home, Permissions::from_mode(0o755)).expect("open");
    std::fs::write(home.join("turnwire.sqlite3"), "no database").expect("written");
    std::fs::write(home.join("turnwire.sqlite3.restore"), "").expect("written");
    let (code, report, _) = doctor(&home, &port, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(finding(&report, "folder", "mode 755").0, "warning");
    assert_eq!(finding(&report, "folder", "interrupted").0, "problem");
    assert_eq!(finding(&report, "version", "cannot be read").0, "problem");
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_are_asked_without_a_key_and_not_offline() {
    let dir = tempfile::tempdir().expect("a folder");
    let pack = dir.path().join("pack");
    let mut init = Command::new(BINARY);
    let init = init.arg("init").arg(&pack).arg("--demo").output();
    assert!(init.expect("it runs").status.success());
    let provider = FakeProvider::start().await;
    let file = pack.join("pack.yaml");
    let text = std::fs::read_to_string(&file).expect("a pack");
    let text = text.replace(
        "  default: \"scripted:market\"\n",
        "  default: \"local:small\"\n",
    );
    std::fs::write(&file, text).expect("written");
    let write_url = |url: &str| {
        let providers = format!(
            "providers:\n  local: {{dialect: openai_chat, base_url: \"{url}\", key: \"${{LOCAL_KEY}}\"}}\n"
        );
        std::fs::write(pack.join("providers.yaml"), providers).expect("written");
    };
    write_url(&format!("{}/v1", provider.base_url()));
    let (home, port) = (dir.path().join("new"), free_port().to_string());
    let pack_flag = pack.display().to_string();
    let (_, report, text) = doctor(&home, &port, &["--pack", &pack_flag, "--offline"]);
    assert_eq!(finding(&report, "providers", "--offline").0, "ok");
    assert!(provider.calls().is_empty(), "{text}");
    provider.push(ProviderAnswer::page(401, "{}"));
    let (code, report, text) = doctor(&home, &port, &["--pack", &pack_flag]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(finding(&report, "providers", "local at 127.0.0.1").0, "ok");
    assert!(!text.contains(KEY), "{text}");
    let sent = format!("{:?}", provider.calls());
    assert!(!sent.contains(KEY), "{sent}");
    write_url("http://127.0.0.1:9/v1");
    let (code, report, text) = doctor(&home, &port, &["--pack", &pack_flag]);
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(
        finding(&report, "providers", "cannot be reached").0,
        "problem"
    );
}
