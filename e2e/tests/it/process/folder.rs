//! The folder of a session has limits: a program that exceeds them is ended, and one that deletes
//! files is not. The folder of a deleted session is removed, however deep it is.

use std::time::Duration;

use hyper::Method;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::shell_server::ShellServer;

const FULL: &str = "The folder of this session has too much in it, and the program was ended; delete \
                    files there.";

#[tokio::test]
async fn program_that_fills_its_folder_is_ended() {
    let server = ShellServer::start(|options| {
        options
            .set("tool", "folder_bytes_max", 8 << 20)
            .set("tool", "folder_entries_max", 500)
    })
    .await;
    for fill in [
        "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > f$i; sleep 0.1; done",
        "i=0; while :; do i=$((i+1)); : > f$i; done",
        // It ends by itself, before it is measured.
        "head -c 9000000 /dev/zero > f",
        // It hides what it writes.
        "mkdir -p a/b; head -c 9000000 /dev/zero > a/b/f; sleep 60",
    ] {
        assert_eq!(server.run(fill).await, FULL, "{fill}");
    }
    // In one session: full, then emptied.
    let session = server.api.create().await.expect("a session");
    for (command, expected) in [
        ("head -c 9000000 /dev/zero > f", FULL),
        ("ls", "f"),
        ("rm f; echo removed", "removed"),
        ("head -c 1000000 /dev/zero > g; echo written", "written"),
    ] {
        let turn = server.submit_to(&server.api, session, command).await;
        let answer = server.answer(&server.api, turn).await;
        assert!(answer.ends_with(expected), "{command}: {answer}");
    }
}

/// Descriptors of the server: enough for its files and connections, and far fewer than levels.
const DESCRIPTORS: u64 = 400;
const LEVELS: usize = 3_000;

#[tokio::test]
async fn deep_folder_of_a_deleted_session_is_removed() {
    let server = ShellServer::start(|options| options.set("tool", "grace_ms", 500)).await;
    let session = server.api.create().await.expect("a session");
    let deepen = format!(
        "python3 -c \"import os\nfor n in range({LEVELS}):\n os.mkdir('d'); os.chdir('d')\n\""
    );
    let turn = server.submit_to(&server.api, session, &deepen).await;
    server.answer(&server.api, turn).await;
    let folder = server.server.home().join("work").join(session.to_string());
    assert!(folder.join("d/d/d/d").exists());
    let pid = i32::try_from(server.server.pid()).ok();
    let pid = pid.and_then(Pid::from_raw);
    let limit = Rlimit {
        current: Some(DESCRIPTORS),
        maximum: Some(DESCRIPTORS),
    };
    prlimit(pid, Resource::Nofile, limit).expect("limited");
    let path = format!("/sessions/{session}");
    let deleted = server.api.send(Method::DELETE, &path, None).await;
    assert!(deleted.expect("an answer").status < 300);
    for _ in 0..2_400 {
        if !folder.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the folder is still there: {}", server.server.stderr());
}
