//! F14: every kind of tool × fan-out, cancelled while all tools run. When the end is reported no
//! process, socket or running row is left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use turnwire_e2e::load;
use turnwire_e2e::stops::{FanOut, StopCase, StopFixture, StopMethod, ToolKind};
use turnwire_event::SessionId;
use turnwire_event::body::turn::TurnCancelled;
use turnwire_event::code::ReceiptKind;

/// Short, so that a matrix of killings does not take long.
const GRACE: Duration = Duration::from_millis(300);

/// Runs cells at the same time on one server; all of it is judged in the end.
async fn run(fixture: StopFixture, cells: Vec<StopCase>) -> Vec<(StopCase, TurnCancelled)> {
    let fixture = Arc::new(fixture);
    let tasks = cells.into_iter().map(|cell| {
        let fixture = fixture.clone();
        (cell, tokio::spawn(async move { cell.run(&fixture).await }))
    });
    let tasks: Vec<_> = tasks.collect();
    let mut sessions: Vec<SessionId> = Vec::new();
    let mut ends = Vec::new();
    for (cell, task) in tasks {
        let (session, end) = task.await.unwrap_or_else(|why| panic!("{cell:?}: {why}"));
        sessions.push(session);
        ends.push((cell, end));
    }
    fixture.sockets_closed().await;
    load::check_history(&fixture.api, &sessions).await;
    ends
}

fn cells(fan: FanOut) -> Vec<StopCase> {
    let kinds = ToolKind::ALL.into_iter().enumerate();
    let cell = |(n, kind)| {
        let number = n + 10 * (fan.leaves() + 1);
        StopCase {
            number,
            kind,
            fan,
            way: StopMethod::ALL[(n + fan.leaves()) % StopMethod::ALL.len()],
        }
    };
    kinds.map(cell).collect()
}

async fn matrix(fan: FanOut) {
    let started = Instant::now();
    let ends = run(StopFixture::open(GRACE).await, cells(fan)).await;
    for (cell, end) in ends {
        let slowest = end.receipt.iter().map(|line| line.ms).max();
        println!("{:?} {:?}: {slowest:?} ms", cell.kind, cell.way);
    }
    println!("{fan:?}: {:?}", started.elapsed());
}

// S3-073, S3-074, S3-081, C-05, I-17
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_tool_of_each_kind_is_stopped() {
    matrix(FanOut::One).await;
}

// S3-073, S3-074, S3-081, C-05, I-17
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_concurrent_tools_of_each_kind_are_stopped() {
    matrix(FanOut::Three).await;
}

// S3-073, S3-074, S3-081, C-05, I-17
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sub_agents_with_tools_of_each_kind_are_stopped() {
    matrix(FanOut::Agents).await;
}

// S3-074
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_is_killed_after_five_seconds_grace() {
    let grace = Duration::from_secs(5);
    let cells = [
        (ToolKind::Ignores, StopMethod::Wait),
        (ToolKind::Delegate, StopMethod::Http),
    ];
    let cells = cells
        .into_iter()
        .enumerate()
        .map(|(number, (kind, way))| StopCase {
            number,
            kind,
            fan: FanOut::One,
            way,
        });
    let ends = run(StopFixture::open(grace).await, cells.collect()).await;
    for (cell, end) in ends {
        let kind = match cell.kind {
            ToolKind::Delegate => ReceiptKind::Worker,
            _ => ReceiptKind::Process,
        };
        let line = end.receipt.iter().find(|line| line.kind == kind);
        let ms = line.expect("a line").ms;
        assert!((5_000..7_000).contains(&ms), "{cell:?}: {end:?}");
        println!("{:?}: killed after {ms} ms", cell.kind);
    }
}
