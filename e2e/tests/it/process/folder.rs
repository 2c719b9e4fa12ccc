//! The folder of a session has limits: a program that exceeds them is ended, and one that deletes
//! files is not.

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
