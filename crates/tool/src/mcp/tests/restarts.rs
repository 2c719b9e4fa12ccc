//! The life of a server: restarted when it fails, kept when a pack is loaded again, stopped when it is
//! not used any more.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use turnwire_event::code::ToolErrorClass;

use super::support::{ServerFixture, run, tool, tool_def, until};
use crate::mcp::McpToolset;
use crate::tests::support::{EventSink, LogCapture, call};

// F14
#[tokio::test]
async fn server_that_dies_fails_its_call_and_restarts() {
    let logs = LogCapture::start();
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let up = || logs.metrics("turnwire_mcp_server_up");
    assert_eq!(up(), [r#"turnwire_mcp_server_up{server="small"} 1"#]);
    let began = Instant::now();
    let failed = run(&tools, "die", json!({})).await.expect_err("a failure");
    assert_eq!(failed.class, ToolErrorClass::Internal);
    assert_eq!(
        failed.message,
        "The tool's server disconnected during the call."
    );
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    // Other calls wait for the restart, which may take longer on a loaded machine.
    let mut text = run(&tools, "echo", json!({"text": "a"})).await;
    for _ in 0..10 {
        if text.is_ok() {
            break;
        }
        text = run(&tools, "echo", json!({"text": "a"})).await;
    }
    assert_eq!(text, Ok(json!("a")));
    assert_eq!(up(), [r#"turnwire_mcp_server_up{server="small"} 1"#]);
    let restarts = logs.metrics("turnwire_mcp_server_restarts_total");
    assert_eq!(
        restarts,
        [r#"turnwire_mcp_server_restarts_total{server="small"} 1"#]
    );
    let calls = logs.metrics("turnwire_mcp_calls_total").join("\n");
    assert!(calls.contains(r#"outcome="broke"} 1"#), "{calls}");
    assert!(calls.contains(r#"outcome="ok"} 1"#), "{calls}");
}

#[tokio::test]
async fn call_waits_two_seconds_for_a_server_that_is_away() {
    let logs = LogCapture::start();
    let fixture = ServerFixture::new();
    let once = fixture.file("once").display().to_string();
    let tools = fixture.open_mode("good", &["--once", &once]).await;
    run(&tools, "die", json!({})).await.expect_err("a failure");
    let began = Instant::now();
    let failed = run(&tools, "echo", json!({})).await.expect_err("away");
    let took = began.elapsed();
    assert_eq!(failed.class, ToolErrorClass::Internal);
    assert_eq!(failed.message, "The tool's server is not available.");
    assert!(took >= Duration::from_millis(1_500), "{took:?}");
    assert_eq!(
        logs.metrics("turnwire_mcp_server_up"),
        [r#"turnwire_mcp_server_up{server="small"} 0"#]
    );
    // Half a second, a second, two: the pauses grow, so there are few attempts.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let tried = fixture.count("initialize");
    assert_eq!(tried, 1, "those that came to nothing never spoke");
    let restarts = logs.metrics("turnwire_mcp_server_restarts_total").concat();
    let restarts: u32 = restarts
        .rsplit(' ')
        .next()
        .expect("a count")
        .parse()
        .expect("a number");
    assert!((1..=6).contains(&restarts), "{restarts}");
    assert!(logs.log().contains("MCP server did not restart"));
}

#[tokio::test]
async fn reload_keeps_the_tools_of_a_server_that_is_away() {
    let logs = LogCapture::start();
    let fixture = ServerFixture::new();
    let once = fixture.file("once").display().to_string();
    let more = ["--once", once.as_str()];
    let first = fixture.open_mode("good", &more).await;
    run(&first, "die", json!({})).await.expect_err("a failure");
    let second = fixture.open_mode("good", &more).await;
    assert_eq!(second.servers().collect::<Vec<_>>(), [("small", 16)]);
    assert!(logs.log().contains("is away; the pack is loaded"));
}

// S2-001
#[tokio::test]
async fn reload_lists_the_tools_again_despite_a_lifetime() {
    let fixture = ServerFixture::new();
    let _first = fixture.open_mode("ttl", &[]).await;
    let _second = fixture.open_mode("ttl", &[]).await;
    assert_eq!(fixture.count("tools/list"), 2);
    assert_eq!(fixture.count("initialize"), 1, "it was kept");
}

/// Waits until the server answers again.
async fn until_restarted(tools: &McpToolset) {
    for _ in 0..60 {
        if run(tools, "echo", json!({"text": "a"})).await == Ok(json!("a")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    panic!("it did not reconnect");
}

// F14
#[tokio::test]
async fn server_that_hangs_is_restarted_after_a_late_call() {
    let logs = LogCapture::start();
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let mut def = tool_def("stop");
    def.timeout_ms = Some(300);
    let stop = tools.tool(&def, "small", "stop").expect("a tool");
    let sink = EventSink::with_room(10);
    let failed = stop.run(call(json!({}), &sink)).await.expect_err("late");
    assert_eq!(failed.class, ToolErrorClass::Timeout);
    until("it is stopped", || {
        logs.log().contains("it does not respond to pings")
    })
    .await;
    until_restarted(&tools).await;
}

// F14
#[tokio::test]
async fn server_that_does_not_read_is_restarted() {
    let logs = LogCapture::start();
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let sink = EventSink::with_room(10);
    let stopped = tokio::spawn(tool(&tools, "stop").run(call(json!({}), &sink)));
    until("it has the call", || fixture.count("tools/call") == 1).await;
    // More than the buffer of a pipe.
    let text = "x".repeat(60_000);
    let calls = (0..5).map(|_| run(&tools, "echo", json!({"text": text})));
    let began = Instant::now();
    for failed in futures_util::future::join_all(calls).await {
        let failed = failed.expect_err("nobody reads");
        assert_eq!(
            failed.message,
            "The tool's server disconnected during the call."
        );
    }
    // Their timeout is 30 s.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(25), "{took:?}");
    assert!(stopped.await.expect("it ran").is_err());
    until("it is logged", || {
        logs.log().contains("it read none of its input")
    })
    .await;
    until_restarted(&tools).await;
}

// S2-001
#[tokio::test]
async fn restart_with_other_tools_keeps_the_list_until_reload() {
    let logs = LogCapture::start();
    let fixture = ServerFixture::new();
    let once = fixture.file("once").display().to_string();
    let more = ["--once", once.as_str()];
    let tools = fixture.open_mode("other", &more).await;
    run(&tools, "die", json!({})).await.expect_err("a failure");
    until("it is logged", || {
        logs.log().contains("has other tools after a restart")
    })
    .await;
    let received = logs.log();
    assert!(
        received.contains(r#"removed=["echo"] added=["new"]"#),
        "{received}"
    );
    // The list of the load stays.
    assert!(
        tools
            .tool(&super::support::tool_def("new"), "small", "new")
            .is_err()
    );
    assert!(
        run(&tools, "slow", json!({"seconds": 0.1, "steps": 1}))
            .await
            .is_ok()
    );
    let next = fixture.open_mode("other", &more).await;
    assert!(
        next.tool(&super::support::tool_def("new"), "small", "new")
            .is_ok()
    );
    assert!(
        next.tool(&super::support::tool_def("echo"), "small", "echo")
            .is_err()
    );
    assert_eq!(fixture.count("initialize"), 2, "the connection was kept");
}

#[tokio::test]
async fn unchanged_definition_keeps_its_connection() {
    let logs = LogCapture::start();
    let fixture = ServerFixture::new();
    let first = fixture.open_mode("good", &[]).await;
    let second = fixture.open_mode("good", &[]).await;
    assert_eq!(fixture.count("initialize"), 1);
    drop(first);
    assert!(run(&second, "echo", json!({})).await.is_ok());
    let mut changed = fixture.def("good", &[]);
    changed.call_timeout_ms = 10_000;
    let third = fixture
        .open(changed)
        .await
        .unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(fixture.count("initialize"), 2);
    // The tools of the old definition still work.
    assert!(run(&second, "echo", json!({})).await.is_ok());
    assert!(run(&third, "echo", json!({})).await.is_ok());
    let up = |count: u32| format!(r#"turnwire_mcp_server_up{{server="small"}} {count}"#);
    assert_eq!(logs.metrics("turnwire_mcp_server_up"), [up(2)]);
    drop(second);
    until("the old one is stopped", || {
        logs.metrics("turnwire_mcp_server_up") == [up(1)]
    })
    .await;
}

#[tokio::test]
async fn unused_server_is_stopped() {
    let logs = LogCapture::start();
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let echo = tool(&tools, "echo");
    drop(tools);
    let sink = EventSink::with_room(10);
    assert!(
        echo.run(call(json!({}), &sink)).await.is_ok(),
        "a turn has it"
    );
    drop(echo);
    until("it is stopped", || {
        logs.metrics("turnwire_mcp_server_up") == [r#"turnwire_mcp_server_up{server="small"} 0"#]
    })
    .await;
    // The next pack has no servers.
    let none = fixture.servers.open(&BTreeMap::new()).await;
    assert_eq!(none.map(|tools| tools.servers().count()).ok(), Some(0));
}

#[tokio::test]
async fn notifications_beyond_the_rate_are_dropped_and_counted() {
    let logs = LogCapture::start();
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let text = run(&tools, "spam", json!({"count": 20_000})).await;
    assert_eq!(text, Ok(json!("spammed")));
    let dropped = logs
        .metrics("turnwire_mcp_notifications_dropped_total")
        .concat();
    let dropped: u64 = dropped
        .rsplit(' ')
        .next()
        .expect("a count")
        .parse()
        .expect("a number");
    assert!(dropped > 1_000, "{dropped}");
}
