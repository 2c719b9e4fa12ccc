//! Credentials of data services: a key that is missing is reported where the pack names it, and a key
//! file that changes is read again. That no key gets out is in `leaks`.

use std::path::Path;
use std::process::Command;

use turnwire_e2e::chat::until;
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::{EngineFixture, asks, working};
use turnwire_testkit::journal::Journal;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::server::{ServerOptions, TestServer, binary};

/// The market with a key of its data service in a file.
fn pack(ccs: &FakeDataService, key_file: &Path) -> TestPack {
    let file = key_file.display();
    let credentials = format!("market: {{key_headers: {{x-api-key: {{key_file: '{file}'}}}}, ");
    let script = working(asks(&["shop"], "Here you are."));
    TestPack::market(&ccs.url())
        .change("connectors.yaml", "market: {", &credentials)
        .script(&script)
}

#[tokio::test]
async fn changed_key_file_is_used_without_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let key_file = folder.path().join("market.key");
    std::fs::write(&key_file, "first-market-key\n").expect("a file");
    let ccs = FakeDataService::start().await;
    let pack = pack(&ccs, &key_file);
    let engine = EngineFixture::on(ccs, ServerOptions::pack(pack)).await;
    engine.ask("offers").await;
    let calls = engine.ccs.take();
    assert!(
        calls[0].head.contains("x-api-key: first-market-key"),
        "{calls:?}"
    );
    std::fs::write(&key_file, "second-market-key\n").expect("a file");
    until("the new key is sent", || async {
        engine.ask("offers").await;
        let calls = engine.ccs.take();
        calls
            .iter()
            .all(|call| call.head.contains("x-api-key: second-market-key"))
    })
    .await;
}

/// What `turnwire check` says of the pack in `folder`.
fn checked(folder: &Path) -> String {
    let done = Command::new(binary())
        .arg("check")
        .arg(folder)
        .env_remove("MARKET_TOKEN")
        .output();
    let done = done.expect("the command runs");
    assert!(!done.status.success());
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

#[tokio::test]
async fn missing_key_is_an_error_with_its_position() {
    let ccs = FakeDataService::start().await;
    let nowhere = Path::new("/nonexistent/market.key");
    let of_file = pack(&ccs, nowhere);
    let variable = "market: {key_headers: {x-api-key: {key: '${MARKET_TOKEN}'}}, ";
    let of_variable = TestPack::market(&ccs.url()).change("connectors.yaml", "market: {", variable);
    let of_variable = of_variable.script(&asks(&["shop"], "Here you are."));
    let file = "the header `x-api-key` of `market`: the key should be in the file \
                `/nonexistent/market.key`, which cannot be read: entity not found";
    let variable = "the header `x-api-key` of `market`: the key should be in the variable \
                    `MARKET_TOKEN`, which is not set";
    for (pack, expected) in [(of_file, file), (of_variable, variable)] {
        let folder = tempfile::tempdir().expect("a folder");
        pack.write(folder.path()).expect("a folder");
        let said = checked(folder.path());
        let expected = format!("error: {expected}");
        assert!(
            said.contains("connectors.yaml:2:") && said.contains(&expected),
            "{said}"
        );
        let refused = TestServer::try_start(ServerOptions::pack(pack), Journal::default()).await;
        let refused = refused.expect_err("no start without the key");
        assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    }
}
