//! The live page of a server that asks for tokens, in a real browser.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use turnwire_identity::Scope;
use turnwire_testkit::environment;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

use super::fixture::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_asks_for_a_token_and_goes_on_after_it_ended() {
    let words = "one two three four five six seven eight nine ten ".repeat(10);
    let script = ModelScript::new()
        .on("slow", [ScriptStep::slow(&words, 5, 100)])
        .on("", [ScriptStep::text("hi")]);
    let fixture = TokenServer::start(ServerOptions::script(script)).await;
    let profile = tempfile::tempdir().expect("a folder");
    let mut node = Command::new("node")
        .arg("access.mjs")
        .arg(format!("http://{}", fixture.server.addr()))
        .arg(profile.path())
        .current_dir(environment::javascript("browser"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("node is needed for this test");
    let mut input = node.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(node.stdout.take().expect("a pipe")).lines();
    let mut ids = HashMap::new();
    let mut report = String::new();
    while let Some(line) = lines.next_line().await.expect("text") {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[..] {
            ["create", principal, scope, ref lifetime @ ..] => {
                let scope: Scope = scope.parse().expect("a scope");
                let lifetime = lifetime.first().map(|seconds| {
                    Duration::from_secs(seconds.parse().expect("a number of seconds"))
                });
                let (token, id) = fixture.token_until(principal, &[scope], lifetime).await;
                ids.insert(token.clone(), id);
                token
            }
            ["revoke", token] => {
                fixture.file.revoke(&ids[token]).expect("revoked");
                fixture.until_status(token, |status| status == 401).await;
                "done".to_owned()
            }
            _ => {
                report = line;
                continue;
            }
        };
        let written = input.write_all(format!("{answer}\n").as_bytes()).await;
        written.expect("read by the program");
    }
    let status = node.wait().await.expect("the end of node");
    println!("{report}");
    assert!(status.success(), "{report}");
    assert!(report.contains("\"requests\":true"), "{report}");
}
