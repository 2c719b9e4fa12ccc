//! How servers are kept: had back when they go, kept when a pack is read again, left when nobody
//! has them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use turnwire_event::code::ToolErrorClass;

use super::stage::{Stage, run, tool, tool_def, until};
use crate::mcp::Listed;
use crate::stage::{Ears, Sink, call};

#[tokio::test]
async fn f14_a_server_that_dies_in_a_call_fails_it_at_once_and_comes_back() {
    let ears = Ears::open();
    let stage = Stage::new();
    let listed = stage.good("good", &[]).await;
    let up = || ears.counted("mcp_server_up");
    assert_eq!(up(), [r#"mcp_server_up{server="small"} 1"#]);
    let began = Instant::now();
    let failed = run(&listed, "die", json!({})).await.expect_err("a failure");
    assert_eq!(failed.class, ToolErrorClass::Internal);
    assert_eq!(failed.told, "The tool's server went away while it worked.");
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    // Others wait for it to come back; on a loaded machine that may take more than they wait.
    let mut said = run(&listed, "echo", json!({"text": "a"})).await;
    for _ in 0..10 {
        if said.is_ok() {
            break;
        }
        said = run(&listed, "echo", json!({"text": "a"})).await;
    }
    assert_eq!(said, Ok(json!("a")));
    assert_eq!(up(), [r#"mcp_server_up{server="small"} 1"#]);
    let restarts = ears.counted("mcp_server_restarts_total");
    assert_eq!(restarts, [r#"mcp_server_restarts_total{server="small"} 1"#]);
    let calls = ears.counted("mcp_calls_total").join("\n");
    assert!(calls.contains(r#"outcome="broke"} 1"#), "{calls}");
    assert!(calls.contains(r#"outcome="ok"} 1"#), "{calls}");
}

#[tokio::test]
async fn a_server_that_does_not_come_back_is_told_after_two_seconds_and_not_tried_for_ever() {
    let ears = Ears::open();
    let stage = Stage::new();
    let once = stage.file("once").display().to_string();
    let listed = stage.good("good", &["--once", &once]).await;
    run(&listed, "die", json!({})).await.expect_err("a failure");
    let began = Instant::now();
    let failed = run(&listed, "echo", json!({})).await.expect_err("away");
    let took = began.elapsed();
    assert_eq!(failed.class, ToolErrorClass::Internal);
    assert_eq!(failed.told, "The tool's server is not there now.");
    assert!(took >= Duration::from_millis(1_500), "{took:?}");
    assert_eq!(
        ears.counted("mcp_server_up"),
        [r#"mcp_server_up{server="small"} 0"#]
    );
    // Half a second, a second, two: the waits grow, so few attempts fit in.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let tried = stage.count("initialize");
    assert_eq!(tried, 1, "those that came to nothing never spoke");
    let restarts = ears.counted("mcp_server_restarts_total").concat();
    let restarts: u32 = restarts
        .rsplit(' ')
        .next()
        .expect("a count")
        .parse()
        .expect("a number");
    assert!((1..=6).contains(&restarts), "{restarts}");
    assert!(ears.heard().contains("an MCP server is not back"));
}

#[tokio::test]
async fn a_pack_that_is_read_again_while_a_server_is_away_has_the_tools_that_it_listed() {
    let ears = Ears::open();
    let stage = Stage::new();
    let once = stage.file("once").display().to_string();
    let more = ["--once", once.as_str()];
    let first = stage.good("good", &more).await;
    run(&first, "die", json!({})).await.expect_err("a failure");
    let second = stage.good("good", &more).await;
    assert_eq!(second.servers().collect::<Vec<_>>(), [("small", 16)]);
    assert!(ears.heard().contains("is away while the pack is read"));
}

#[tokio::test]
async fn s2_001_a_pack_that_is_read_again_has_the_tools_of_now_however_long_a_list_is_said_to_hold()
{
    let stage = Stage::new();
    let _first = stage.good("ttl", &[]).await;
    let _second = stage.good("ttl", &[]).await;
    assert_eq!(stage.count("tools/list"), 2);
    assert_eq!(stage.count("initialize"), 1, "it was kept");
}

/// Until `listed` answers again.
async fn is_back(listed: &Listed) {
    for _ in 0..60 {
        if run(listed, "echo", json!({"text": "a"})).await == Ok(json!("a")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    panic!("it was not had back");
}

#[tokio::test]
async fn f14_a_server_that_hangs_is_left_after_a_call_that_was_late_and_comes_back() {
    let ears = Ears::open();
    let stage = Stage::new();
    let listed = stage.good("good", &[]).await;
    let mut def = tool_def("stop");
    def.timeout_ms = Some(300);
    let stop = listed.tool(&def, "small", "stop").expect("a tool");
    let sink = Sink::with_room(10);
    let failed = stop.run(call(json!({}), &sink)).await.expect_err("late");
    assert_eq!(failed.class, ToolErrorClass::Timeout);
    until("it is left", || {
        ears.heard().contains("it could not be reached")
    })
    .await;
    is_back(&listed).await;
}

#[tokio::test]
async fn f14_a_server_that_does_not_read_is_left_and_comes_back() {
    let ears = Ears::open();
    let stage = Stage::new();
    let listed = stage.good("good", &[]).await;
    let sink = Sink::with_room(10);
    let stopped = tokio::spawn(tool(&listed, "stop").run(call(json!({}), &sink)));
    until("it has the call", || stage.count("tools/call") == 1).await;
    // More than a pipe holds.
    let text = "x".repeat(60_000);
    let calls = (0..5).map(|_| run(&listed, "echo", json!({"text": text})));
    let began = Instant::now();
    for failed in futures_util::future::join_all(calls).await {
        let failed = failed.expect_err("nobody reads");
        assert_eq!(failed.told, "The tool's server went away while it worked.");
    }
    // Their own time is 30 s.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(25), "{took:?}");
    assert!(stopped.await.expect("it ran").is_err());
    until("it is told", || {
        ears.heard().contains("it took nothing of what it was sent")
    })
    .await;
    is_back(&listed).await;
}

#[tokio::test]
async fn s2_001_a_server_that_comes_back_with_other_tools_keeps_its_list_until_the_next_load() {
    let ears = Ears::open();
    let stage = Stage::new();
    let once = stage.file("once").display().to_string();
    let more = ["--once", once.as_str()];
    let listed = stage.good("other", &more).await;
    run(&listed, "die", json!({})).await.expect_err("a failure");
    until("it is told", || {
        ears.heard().contains("came back with other tools")
    })
    .await;
    let heard = ears.heard();
    assert!(heard.contains(r#"gone=["echo"] new=["new"]"#), "{heard}");
    // What was listed stays, and a tool that is gone fails by the server's own word.
    assert!(
        listed
            .tool(&super::stage::tool_def("new"), "small", "new")
            .is_err()
    );
    assert!(
        run(&listed, "slow", json!({"seconds": 0.1, "steps": 1}))
            .await
            .is_ok()
    );
    let next = stage.good("other", &more).await;
    assert!(
        next.tool(&super::stage::tool_def("new"), "small", "new")
            .is_ok()
    );
    assert!(
        next.tool(&super::stage::tool_def("echo"), "small", "echo")
            .is_err()
    );
    assert_eq!(stage.count("initialize"), 2, "the connection was kept");
}

#[tokio::test]
async fn a_definition_that_has_not_changed_keeps_its_connection_and_another_does_not() {
    let ears = Ears::open();
    let stage = Stage::new();
    let first = stage.good("good", &[]).await;
    let second = stage.good("good", &[]).await;
    assert_eq!(stage.count("initialize"), 1);
    drop(first);
    assert!(run(&second, "echo", json!({})).await.is_ok());
    let mut changed = stage.def("good", &[]);
    changed.call_timeout_ms = 10_000;
    let third = stage
        .open(changed)
        .await
        .unwrap_or_else(|bad| panic!("{bad:?}"));
    assert_eq!(stage.count("initialize"), 2);
    // Whoever is bound to the old one still has it.
    assert!(run(&second, "echo", json!({})).await.is_ok());
    assert!(run(&third, "echo", json!({})).await.is_ok());
    let up = |count: u32| format!(r#"mcp_server_up{{server="small"}} {count}"#);
    assert_eq!(ears.counted("mcp_server_up"), [up(2)]);
    drop(second);
    until("the old one is left", || {
        ears.counted("mcp_server_up") == [up(1)]
    })
    .await;
}

#[tokio::test]
async fn a_server_that_nobody_has_any_more_is_left() {
    let ears = Ears::open();
    let stage = Stage::new();
    let listed = stage.good("good", &[]).await;
    let echo = tool(&listed, "echo");
    drop(listed);
    let sink = Sink::with_room(10);
    assert!(
        echo.run(call(json!({}), &sink)).await.is_ok(),
        "a turn has it"
    );
    drop(echo);
    until("it is left", || {
        ears.counted("mcp_server_up") == [r#"mcp_server_up{server="small"} 0"#]
    })
    .await;
    // Nothing is left over for the next pack.
    let none = stage.servers.open(&BTreeMap::new()).await;
    assert_eq!(none.map(|listed| listed.servers().count()).ok(), Some(0));
}

#[tokio::test]
async fn notifications_beyond_the_bound_are_dropped_and_counted() {
    let ears = Ears::open();
    let stage = Stage::new();
    let listed = stage.good("good", &[]).await;
    let said = run(&listed, "spam", json!({"count": 20_000})).await;
    assert_eq!(said, Ok(json!("spammed")));
    let dropped = ears.counted("mcp_notifications_dropped_total").concat();
    let dropped: u64 = dropped
        .rsplit(' ')
        .next()
        .expect("a count")
        .parse()
        .expect("a number");
    assert!(dropped > 1_000, "{dropped}");
}
