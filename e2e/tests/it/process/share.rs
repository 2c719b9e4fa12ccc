//! Programs of several owners on one server: a greedy one leaves places to the others.

use std::time::Duration;

use turnwire_testkit::stubborn::StubbornPrograms;

use crate::shell_server::ShellServer;

/// The programs of one owner that run at the same time.
const SHARE: usize = 2;

#[tokio::test]
async fn greedy_owner_leaves_programs_to_others() {
    let server = ShellServer::start(|options| {
        options
            .set("tool", "programs_max", 2 * SHARE)
            .set("tool", "programs_per_owner_max", SHARE)
            .set("tool", "waiting_per_owner_max", 4)
    })
    .await;
    let greedy = server.server.api().with("x-turnwire-principal", "greedy");
    let quiet = server.server.api().with("x-turnwire-principal", "quiet");
    let programs = StubbornPrograms::new();
    let path = programs.write("sleep", "ready; exec sleep 600");
    let command = format!("exec sh {}", path.display());
    let mut turns = Vec::new();
    for _ in 0..SHARE + 4 {
        turns.push(server.submit(&greedy, &command).await);
    }
    programs.until_ready(SHARE).await;
    // The greedy owner has its share running and four waiting; a quiet one is served at once.
    let answer = server.submit(&quiet, "echo mine").await;
    assert_eq!(server.answer(&quiet, answer).await, "mine");
    assert_eq!(programs.ready(), SHARE);
    // One more call of the greedy owner than may wait is refused.
    let refused = loop {
        let turn = server.submit(&greedy, "echo late").await;
        let ended = tokio::time::timeout(Duration::from_secs(2), server.answer(&greedy, turn));
        // Until all the others wait, this one waits with them.
        if let Ok(answer) = ended.await {
            break answer;
        }
        turns.push(turn);
    };
    assert_eq!(refused, "Too many programs are running; try again later.");
    for turn in turns {
        greedy.cancel(turn.turn).await.expect("cancelled");
    }
    programs.until_gone(crate::workshop::WITHIN).await;
}
