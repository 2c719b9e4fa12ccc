//! Programs that are stopped while their guard is still starting.

use turnwire_event::EventType;
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

use crate::shell_server::ShellServer;

// S3-074
#[tokio::test]
async fn cancel_right_after_the_start_kills_no_guard() {
    let server = ShellServer::start(|options| options).await;
    let api = &server.api;
    for _ in 0..20 {
        let session = api.create().await.expect("a session");
        let client = WatchClient::connect(api, "canceller", session).await;
        let mut client = client.expect("a connection");
        let subscribed = client.subscribed(&SubscribeOptions::live()).await;
        subscribed.expect("an acknowledgement");
        let turn = server.submit_to(api, session, "sleep 600").await.turn;
        let called = client.until(|event| event.body.kind() == EventType::ToolCalled);
        called.await.expect("a call");
        let answer = api.cancel(turn).await.expect("an answer");
        assert_eq!(answer.status, 202);
        let row = api.ended(turn).await.expect("an end");
        assert_eq!(row["state"], "cancelled");
    }
    let log = server.server.stderr();
    assert!(!log.contains("guard of a program died"), "{log}");
    assert_eq!(server.metric("turnwire_tool_guard_deaths_total").await, 0);
}
